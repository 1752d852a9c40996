#include "tools/doctor/host_report.h"

#include <sodium.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "plugin/config/config.h"
#include "plugin/version.h"
#include "tools/doctor/encryption.h"
#include "tools/doctor/knobs.h"
#include "tools/probe/measurement.h"

namespace riffle::tools {
namespace {

using nlohmann::json;

constexpr char kWord[] = "diagnosed ";

std::string hash_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  if (path.empty() || !in) return "";
  unsigned char hash[crypto_generichash_BYTES];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(content.data()),
                     content.size(), nullptr, 0);
  char text[2 * 6 + 1];
  return sodium_bin2hex(text, sizeof text, hash, 6);
}

}  // namespace

HostReport report_of(const Diagnosis& diagnosis) {
  HostReport report;
  report.host = own_node_name();
  report.version = kVersion;
  report.build = hash_of(diagnosis.plugin);
  report.nccl = diagnosis.nccl;
  report.clock_s = std::time(nullptr);
  report.mtu = diagnosis.mtu;
  report.files = most_open_files();
  for (const KnobInfo& knob : knobs()) {
    if (knob.in_digest) report.settings[knob.name] = knob.value;
  }
  report.settings["RIFFLE_NET"] = diagnosis.network;
  report.settings["RIFFLE_KEY_FILE"] = key_mark(config());
  for (const Verdicts::Verdict& v : diagnosis.verdicts.all()) {
    if (v.kind == Verdicts::Kind::kProblem) report.problems.emplace_back(v.text, v.remedy);
  }
  return report;
}

std::string to_line(const HostReport& report) {
  const json line = {
      {"host", report.host},   {"version", report.version},   {"build", report.build},
      {"nccl", report.nccl},   {"clock_s", report.clock_s},   {"mtu", report.mtu},
      {"files", report.files}, {"settings", report.settings}, {"problems", report.problems}};
  return kWord + line.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<HostReport> report_from_line(const std::string& line) {
  if (!line.starts_with(kWord)) return remote_error("unexpected answer: " + line.substr(0, 80));
  try {
    const json in = json::parse(line.substr(sizeof kWord - 1));
    HostReport report;
    in.at("host").get_to(report.host);
    in.at("version").get_to(report.version);
    in.at("build").get_to(report.build);
    in.at("nccl").get_to(report.nccl);
    in.at("clock_s").get_to(report.clock_s);
    report.mtu = in.value("mtu", std::string());  // 0.2.0's first builds have neither
    report.files = in.value("files", std::uint64_t{0});
    in.at("settings").get_to(report.settings);
    in.at("problems").get_to(report.problems);
    if (report.host.empty()) return remote_error("it does not know its name");
    return report;
  } catch (const json::exception& e) {
    return remote_error(std::string("its answer is not understood: ") + e.what());
  }
}

}  // namespace riffle::tools
