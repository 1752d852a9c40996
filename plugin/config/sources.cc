#include "plugin/config/sources.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

namespace riffle {
namespace {

constexpr std::string_view kPrefix = "RIFFLE_";

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

void read_environment(Settings& settings) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    if (name == "RIFFLE_CONF_FILE" || name.starts_with("RIFFLE_TEST_")) continue;
    std::string value = trimmed(line.substr(equals + 1));
    if (!value.empty()) settings.found.push_back({std::string(name), value, "environment"});
  }
}

void read_line(const std::string& text, const std::string& where, Settings& settings) {
  const std::string line = trimmed(text);
  if (line.empty() || line.front() == '#') return;
  const std::size_t equals = line.find('=');
  if (equals == std::string::npos) {
    settings.problems.push_back(where + ": \"" + line + "\" is not KEY=VALUE; ignored");
    return;
  }
  std::string value = line.substr(equals + 1);
  if (const std::size_t comment = value.find(" #"); comment != std::string::npos) {
    value.resize(comment);
  }
  settings.found.push_back({trimmed(line.substr(0, equals)), trimmed(value), where});
}

void read_file(const std::string& path, bool must_exist, Settings& settings) {
  std::ifstream file(path);
  if (!file) {
    if (must_exist) {
      settings.problems.push_back("RIFFLE_CONF_FILE=" + path + " cannot be read (" +
                                  std::strerror(errno) + "); defaults hold");
    }
    return;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    read_line(line, path + ":" + std::to_string(number), settings);
  }
  if (file.bad()) settings.problems.push_back(path + ": reading failed; the rest is ignored");
}

}  // namespace

Settings read_settings() {
  Settings settings;
  read_environment(settings);
  const char* chosen = std::getenv("RIFFLE_CONF_FILE");
  if (chosen != nullptr && *chosen != '\0') {
    read_file(chosen, true, settings);
    return settings;
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') {
    read_file(std::string(home) + "/.riffle.conf", false, settings);
  }
  read_file("/etc/riffle.conf", false, settings);
  return settings;
}

}  // namespace riffle
