#include "plugin/transport/nccl_net/library_name.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace riffle::nccl_net {
namespace {

constexpr char kUsualOwnFile[] = "libnccl-net-riffle.so";

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// As strtok does it: empty entries do not count.
std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> entries;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) entries.push_back(word);
  }
  return entries;
}

bool names_own_file(const std::string& entry, const std::string& own_file) {
  std::error_code ignored;
  if (entry.find('/') != std::string::npos && std::filesystem::exists(entry, ignored)) {
    return std::filesystem::equivalent(entry, own_file, ignored);
  }
  return std::ranges::any_of(files_of_name(entry), [&](const std::string& file) {
    return last_part(file) == last_part(own_file) || last_part(file) == kUsualOwnFile;
  });
}

}  // namespace

bool names_library(const std::string& riffle_net) {
  return !riffle_net.empty() && riffle_net != "auto" && riffle_net != "tcp";
}

Result<std::string> library_name(const LibraryChoice& choice, const std::string& own_file) {
  if (choice.name != "next") return choice.name;
  const std::string said = "RIFFLE_NET=next: NCCL_NET_PLUGIN=" + choice.plugin_list;
  const std::string remedy = "; it takes a list such as riffle,ofi (NCCL 2.27.3 and later)";
  const std::vector<std::string> entries = entries_of(choice.plugin_list);
  const auto own = std::ranges::find_if(
      entries, [&](const std::string& entry) { return names_own_file(entry, own_file); });
  if (own == entries.end()) return invalid_argument(said + " does not name riffle" + remedy);
  if (own + 1 == entries.end()) {
    return invalid_argument(said + " names no library after " + *own + remedy);
  }
  return *(own + 1);
}

std::vector<std::string> files_of_name(const std::string& name) {
  std::vector<std::string> files = {name};
  const bool is_path = name.find('/') != std::string::npos;
  const bool is_library = name.starts_with("lib") && name.ends_with(".so");
  if (!is_path && !is_library) files.push_back("libnccl-net-" + name + ".so");
  return files;
}

}  // namespace riffle::nccl_net
