// The plan in force and its bound, from the record that Riffle writes with RIFFLE_RECORD
// (docs/commands.md, "The record"). C++14, no dependencies but POSIX.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <istream>
#include <string>

namespace riffle_tests {

struct PlanInForce {
  std::string name;             // empty: the record has no plan
  std::string mode;             // of all-reduces; empty: none was ever in force
  double bound_us_per_mib = 0;  // 0: not known
};

// The text or number behind the first "key": of a line; empty: there is none. Within a text no
// quote stands without a backslash, so what looks like a key is one.
inline std::string field(const std::string& line, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  std::size_t at = line.find(quoted);
  if (at == std::string::npos) return "";
  at += quoted.size();
  std::string value;
  if (line[at] != '"') {
    while (at < line.size() && line[at] != ',' && line[at] != '}') value += line[at++];
    return value;
  }
  for (++at; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) ++at;
    value += line[at];
  }
  return value;
}

// The last plan and mode of a record. A line that is cut off, the last one of a running job, does
// not count.
inline PlanInForce read_plan(std::istream& record) {
  PlanInForce plan;
  for (std::string line; std::getline(record, line) && !record.eof();) {
    if (line.compare(0, 14, "{\"type\":\"plan\"") == 0) {
      plan.name = field(line, "name");
      // A line of a node that did not plan has no bound; the fabric is the same.
      const std::string bound = field(line, "bound_us_per_mib");
      if (!bound.empty()) plan.bound_us_per_mib = std::strtod(bound.c_str(), nullptr);
    } else if (line.compare(0, 14, "{\"type\":\"mode\"") == 0) {
      plan.mode = field(line, "mode");
    }
  }
  return plan;
}

// A number from the environment, as file names have it.
inline std::string number_of(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    const std::string value(text);
    if (value.size() <= 12 && value.find_first_not_of("0123456789") == std::string::npos) {
      return value;
    }
  }
  return "0";
}

// The file that Riffle writes in this process for a RIFFLE_RECORD: plugin/config/file_pattern.h.
// Empty: not a pattern that Riffle accepts.
inline std::string record_of_process(std::string pattern) {
  if (pattern.empty()) return "";
  struct stat info;
  const bool is_folder = stat(pattern.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (is_folder && pattern.back() != '/') pattern += '/';
  if (pattern.back() == '/') pattern += "riffle.%h.%p.jsonl";
  if (pattern.find("%p") == std::string::npos && pattern.find("%r") == std::string::npos) {
    pattern += ".%h.%p";
  }
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) return "";
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    switch (++i < pattern.size() ? pattern[i] : '\0') {
      case 'h':
        path += host;
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
        return "";
    }
  }
  return path;
}

}  // namespace riffle_tests
