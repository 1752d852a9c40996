#include "plugin/config/file_pattern.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace riffle {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

// From the environment, which must not lead out of the folder that the pattern names.
std::string number_of(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    std::string value(text);
    if (value.size() <= 12 && value.find_first_not_of("0123456789") == std::string::npos) {
      return value;
    }
  }
  return "0";
}

}  // namespace

Result<std::string> file_of_process(const std::string& knob, const std::string& pattern,
                                    const std::string& suffix) {
  std::string full = pattern;
  std::error_code error;
  if (full.back() == '/' || std::filesystem::is_directory(full, error)) {
    full += (full.back() == '/' ? "riffle.%h.%p." : "/riffle.%h.%p.") + suffix;
  }
  if (full.find("%p") == std::string::npos && full.find("%r") == std::string::npos) {
    full += ".%h.%p";
  }
  std::string path;
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full[i] != '%') {
      path += full[i];
      continue;
    }
    const char letter = ++i < full.size() ? full[i] : '\0';
    switch (letter) {
      case 'h':
        path += host_name();
        break;
      case 'p':
        path += std::to_string(getpid());
        break;
      case 'r':
        path += number_of({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
        break;
      case 'j':
        path += number_of({"SLURM_JOB_ID"});
        break;
      case '%':
        path += '%';
        break;
      default:
        return invalid_argument(knob + "=" + pattern + ": %" + std::string(1, letter) +
                                " is not known; accepted are %h host, %p process, %r rank, %j "
                                "Slurm job and %%");
    }
  }
  return path;
}

std::string slurm_job_id() {
  const std::string id = number_of({"SLURM_JOB_ID"});
  return id == "0" ? "" : id;
}

}  // namespace riffle
