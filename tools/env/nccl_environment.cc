#include "tools/env/nccl_environment.h"

#include <cstdio>
#include <filesystem>

namespace riffle::tools {
namespace {

constexpr int kFirst = 21207;  // 2.12.7: the first release with tables that we export
constexpr int kLast = 23099;   // 2.30.x: the last one looked at
constexpr int code_of(int minor, int patch) { return 20000 + minor * 100 + patch; }

}  // namespace

Result<int> parse_release(const std::string& text) {
  if (text.empty()) return 0;
  int major = 0, minor = 0, patch = 0, used = 0;
  int code = 0;
  const int fields = std::sscanf(text.c_str(), "%d.%d.%d%n", &major, &minor, &patch, &used);
  const bool whole = fields == 3 && used == static_cast<int>(text.size());
  const bool short_form = fields == 2 && text.find_first_not_of("0123456789.") == std::string::npos;
  if (whole || short_form) {
    if (major == 2 && minor >= 0 && minor <= 99 && patch >= 0 && patch <= 99)
      code = code_of(minor, patch);
    if (short_form && code == code_of(12, 0)) code = kFirst;
  } else if (text.size() == 5 && text.find_first_not_of("0123456789") == std::string::npos) {
    code = std::stoi(text);
  }
  if (code >= kFirst && code <= kLast) return code;
  return invalid_argument("NCCL release \"" + text + "\": accepted are " + release_name(kFirst) +
                          " to 2.30, written 2.27.5, 2.27 or 22705");
}

std::string release_name(int code) {
  return "2." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

std::string value_over(const Export& e, const char* present) {
  const bool is_joined = e.is_list && present != nullptr && *present != '\0';
  return is_joined ? e.value + ":" + present : e.value;
}

std::vector<Export> needed_exports(int code, const PluginPlace& place) {
  const bool any = code == 0;
  const auto from = [&](int minor, int patch) { return any || code >= code_of(minor, patch); };
  const auto before = [&](int minor, int patch) { return any || code < code_of(minor, patch); };
  // NET is found by a name on every release, and by a path from 2.21 on.
  const bool net_by_path = !place.has_links && !before(21, 0);
  const auto table = [&](const char* variable, const char* name, bool by_path, const char* why) {
    return Export{variable, by_path ? place.file : name, why};
  };
  std::vector<Export> all;
  if (!place.file.empty() && !place.is_searched && !net_by_path) {
    all.push_back({"LD_LIBRARY_PATH", std::filesystem::path(place.file).parent_path().string(),
                   "where the loader finds libnccl-net-riffle.so", true});
  }
  all.push_back(table("NCCL_NET_PLUGIN", "riffle", net_by_path,
                      "loads libnccl-net-riffle.so: NET and COLLNET"));
  if (from(19, 1)) {
    // 2.19 and 2.20 open the value as a file name and try nothing else.
    all.push_back(table("NCCL_TUNER_PLUGIN", before(21, 0) ? "libnccl-tuner-riffle.so" : "riffle",
                        !place.has_links, "steers large all-reduces to Riffle's group plans"));
  }
  if (from(23, 4) && before(28, 0)) {
    all.push_back(table("NCCL_PROFILER_PLUGIN",
                        before(26, 0) ? "libnccl-profiler-riffle.so" : "riffle", !place.has_links,
                        "2.23 to 2.27 find the profiler only by its own variable"));
  }
  all.push_back({"NCCL_COLLNET_ENABLE", "1", "without it NCCL never calls COLLNET"});
  if (from(18, 1)) {
    all.push_back({"NCCL_COMM_SPLIT_SHARE_RESOURCES", "1",
                   "communicators made by ncclCommSplit keep CollNet"});
  }
  if (from(28, 3) && before(30, 0)) {
    all.push_back({"NCCL_NET_PLUGIN_REF_COUNT", "1",
                   "2.28.3 to 2.29.7 forget the plugin's name after the last communicator"});
  }
  if (from(30, 3)) {
    all.push_back(
        {"NCCL_IGNORE_COLLNET_MISMATCH", "1",
         "where nodes differ, 2.30.3 and later end on rank 0 alone, before Riffle can say "
         "why"});
  }
  return all;
}

std::vector<std::string> limits_of(int code) {
  std::vector<std::string> limits = {
      "only AllReduce runs in group plans; all other collectives take NCCL's ring or tree over "
      "Riffle's NET"};
  if (code == 0) return limits;
  if (code < code_of(19, 1)) {
    limits.push_back(
        "this release has no tuner plugin: NCCL's own cost model decides on CollNet, or "
        "NCCL_ALGO=CollNet (2.12, 2.13) or CollNetChain");
  }
  if (code >= code_of(21, 0) && code < code_of(22, 0)) {
    limits.push_back("2.21 never loads the tuner again after the last communicator is gone");
  }
  return limits;
}

Result<JobEnvironment> job_environment(const std::string& release, const PluginPlace& place) {
  const auto code = parse_release(release);
  if (!code) return code.status();
  if (place.file.find_first_of(":;") != std::string::npos) {
    return invalid_argument(place.file + ": a colon or semicolon ends an entry of LD_LIBRARY_PATH");
  }
  if (!place.has_links && place.file.find(',') != std::string::npos) {
    return invalid_argument(place.file + ": a comma ends an entry of NCCL_NET_PLUGIN");
  }
  JobEnvironment job{*code, needed_exports(*code, place), {}, ""};
  if (place.file.empty()) job.notes.push_back(kPluginMissing);
  for (const std::string& limit : limits_of(*code)) job.notes.push_back(limit);
  return job;
}

std::string title_of(const JobEnvironment& job) {
  return "Riffle under " +
         (job.code ? "NCCL " + release_name(job.code) : "any NCCL from 2.12.7 to 2.30");
}

}  // namespace riffle::tools
