#include "tools/doctor/job_variables.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "plugin/config/config.h"

namespace riffle::tools {

JobVariables::JobVariables(Verdicts* verdicts) {
  const std::string chosen = value("NCCL_CONF_FILE");
  if (!chosen.empty()) {
    if (!take_file(chosen)) {
      verdicts->problem_for_sh("NCCL_CONF_FILE=" + chosen + " cannot be read (" +
                                   std::strerror(errno) + "), which NCCL does not say",
                               "unset NCCL_CONF_FILE");
    }
  } else if (const passwd* user = getpwuid(getuid()); user != nullptr) {  // not $HOME, as in NCCL
    take_file(std::string(user->pw_dir) + "/.nccl.conf");
  }
  take_file("/etc/nccl.conf");
}

bool JobVariables::take_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos || equals == 0) continue;
    const std::string name = line.substr(0, equals);
    if (std::getenv(name.c_str()) != nullptr) continue;
    setenv(name.c_str(), line.substr(equals + 1).c_str(), 0);
    files_.emplace(name, path);
  }
  return true;
}

std::string JobVariables::value(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

std::string JobVariables::said(const std::string& name) const {
  const auto file = files_.find(name);
  return name + "=" + value(name) + (file == files_.end() ? "" : " (" + file->second + ")");
}

void JobVariables::problem_unless_unset(const std::string& name, std::string text,
                                        Verdicts* verdicts) const {
  if (const auto file = files_.find(name); file != files_.end()) {
    verdicts->problem(std::move(text), "take " + name + " out of " + file->second);
  } else if (!value(name).empty()) {
    verdicts->problem_for_sh(std::move(text), "unset " + name);
  } else {  // of Riffle's own files
    const std::vector<KnobInfo> all = knobs();
    const auto knob = std::ranges::find(all, name, &KnobInfo::name);
    verdicts->problem(std::move(text),
                      "take " + name + " out of " +
                          (knob == all.end() ? std::string("riffle.conf") : knob->source));
  }
}

}  // namespace riffle::tools
