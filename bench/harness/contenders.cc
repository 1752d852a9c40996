#include "bench/harness/contenders.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "lab/nccl_host/launcher.h"
#include "lab/nccl_host/tables/plugin_library.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kNameLength = 40;
constexpr int kMostWarmup = 1000;
constexpr char kNameCharacters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kNameLength && text[0] != '.' &&
         text.find_first_not_of(kNameCharacters) == std::string::npos;
}

Result<Contender> parse(const std::string& argument) {
  Contender contender;
  const std::size_t equals = argument.find('=');
  // A path may hold one, a name holds no slash.
  const bool has_name = equals < argument.find('/');
  if (has_name) contender.name = argument.substr(0, equals);
  if (has_name && !is_name(contender.name)) {
    return invalid_argument("--plugin " + argument + ": a name is 1 to " +
                            std::to_string(kNameLength) +
                            " letters, digits, '_', '+', '-' or '.', which it does not begin with");
  }
  const std::filesystem::path file = argument.substr(has_name ? equals + 1 : 0);
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) {
    return invalid_argument("--plugin " + argument + ": there is no file \"" + file.string() +
                            "\"");
  }
  contender.file = std::filesystem::absolute(file).lexically_normal().string();
  return contender;
}

// The parts of a path from its end; what is no name as it is, as one.
std::vector<std::string> parts_of(const std::string& file) {
  const std::filesystem::path path = file;
  std::vector<std::string> parts;
  for (const auto& part : path.relative_path()) parts.insert(parts.begin(), part.string());
  parts[0] = path.stem().string();
  for (std::string& part : parts) {
    for (char& c : part) c = is_name(std::string(1, c)) || c == '.' ? c : '_';
    part = (part[0] == '.' ? "_" : "") + part.substr(0, kNameLength - 1);
  }
  return parts;
}

Status parse_warmup(const std::string& argument, const std::string& value, int& warmup) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), warmup);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (is_number && warmup >= 0 && warmup <= kMostWarmup) return Status::ok();
  return invalid_argument("--settings " + argument + ": warmup is 0 to " +
                          std::to_string(kMostWarmup));
}

void name_by_path(std::vector<Contender*> unnamed) {
  std::vector<std::vector<std::string>> parts;
  std::size_t depth = SIZE_MAX;
  for (const Contender* contender : unnamed) {
    parts.push_back(parts_of(contender->file));
    depth = std::min(depth, parts.back().size());
  }
  std::size_t level = 0;
  for (; level < depth; ++level) {
    std::set<std::string> names;
    for (const auto& of_one : parts) names.insert(of_one[level]);
    if (names.size() == parts.size()) break;
  }
  if (level == depth) level = 0;  // the same file twice
  for (std::size_t i = 0; i < unnamed.size(); ++i) unnamed[i]->name = parts[i][level];
}

}  // namespace

Result<std::vector<Contender>> contenders(const std::vector<std::string>& arguments) {
  std::vector<Contender> all;
  for (const std::string& argument : arguments) {
    const auto contender = parse(argument);
    if (!contender) return contender.status();
    all.push_back(*contender);
  }
  std::vector<Contender*> unnamed;
  for (Contender& contender : all) {
    if (contender.name.empty()) unnamed.push_back(&contender);
  }
  if (!unnamed.empty()) name_by_path(unnamed);
  std::set<std::string> names;
  for (const Contender& contender : all) {
    if (names.insert(contender.name).second) continue;
    return invalid_argument("--plugin: two shared objects are called \"" + contender.name +
                            "\"; --plugin NAME=FILE calls one something else");
  }
  return all;
}

Status apply_settings(const std::vector<std::string>& arguments, std::vector<Contender>& all) {
  for (const std::string& argument : arguments) {
    const std::size_t colon = argument.find(':');
    const auto of = std::ranges::find(all, argument.substr(0, colon), &Contender::name);
    if (colon == std::string::npos || of == all.end()) {
      return invalid_argument("--settings " + argument +
                              ": accepted is NAME:KEY=VALUE,KEY=VALUE... with a NAME of --plugin");
    }
    std::istringstream pairs(argument.substr(colon + 1));
    for (std::string pair; std::getline(pairs, pair, ',');) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos || equals == 0) {
        return invalid_argument("--settings " + argument + ": \"" + pair + "\" is no KEY=VALUE");
      }
      const std::string key = pair.substr(0, equals), value = pair.substr(equals + 1);
      if (key != "warmup") {
        of->environment.emplace_back(key, value);
      } else if (Status s = parse_warmup(argument, value, of->warmup); !s) {
        return s;
      }
    }
  }
  return Status::ok();
}

Result<std::vector<Contender>> rivals(const std::string& file, const std::vector<Peer>& peers) {
  std::vector<Contender> all = {{"riffle", file}};
  for (const Peer& peer : peers) {
    const auto is_there = [&peer](const Contender& one) { return one.name == peer.name; };
    if (std::ranges::any_of(all, is_there)) continue;
    if (!peer.missing.empty())
      return invalid_argument("--peers " + peer.name + ": " + peer.missing);
    Contender contender{peer.name, file};
    contender.rival = peer;
    all.push_back(std::move(contender));
  }
  if (all.size() < 2) return invalid_argument("--in-turns: --peers names no rival of riffle");
  return all;
}

Status check_plugin(const Contender& contender) {
  std::string reason;
  host::LaunchOptions options;
  options.ranks = 1;
  options.on_note = [&reason](int, const std::string& text) { reason = text; };
  const auto exits = host::launch(options, [&contender](host::Bootstrap& bootstrap) {
    const auto library = host::PluginLibrary::load(contender.file, {});
    return library ? Status::ok() : bootstrap.note(library.status().message());
  });
  const Status ended = host::all_succeeded(exits);
  if (reason.empty() && !ended) reason = "loading it fails: " + ended.message();
  if (reason.empty()) return Status::ok();
  return invalid_argument("--plugin " + contender.file + " is no plugin of NCCL: " + reason);
}

}  // namespace riffle::bench
