#include "lab/cluster/profile_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "lab/cluster/random_profile.h"
#include "topology/base/nearest.h"

namespace riffle::cluster {

namespace {

constexpr std::string_view kRandom = "random:";

Result<Profile> drawn(const std::string& name) {
  const char* const begin = name.data() + kRandom.size();
  const char* const end = name.data() + name.size();
  std::uint64_t seed = 0;
  const auto read = std::from_chars(begin, end, seed);
  if (read.ec == std::errc() && read.ptr == end) return random_profile(seed);
  return invalid_argument("profile \"" + name +
                          "\": random: is followed by a whole number from 0 to 2^64 - 1");
}

}  // namespace

Result<Profile> load_profile(const std::string& name, const std::string& folder) {
  if (name.starts_with(kRandom)) return drawn(name);
  std::filesystem::path path = name;
  if (!path.has_parent_path() && !path.has_extension()) {
    path = std::filesystem::path(folder) / (name + ".toml");
  }
  std::ifstream file(path);
  if (!file) {
    const std::vector<std::string> names = profile_names(folder);
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::string known;
    for (const std::string& n : names) known += " " + n;
    return invalid_argument(
        "no profile \"" + name + "\": cannot read " + path.string() +
        (names.empty() ? "" : "; did you mean " + std::string(nearest(name, views)) + "?") +
        " There are:" + (known.empty() ? " none" : known));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_profile(text.str(), path.string());
}

std::vector<std::string> profile_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace riffle::cluster
