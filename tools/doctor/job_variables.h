// NCCL's own files of settings. NCCL takes them into the environment before it loads a plugin, so
// that what they say of RIFFLE_* holds, too. Source: NCCL 2.28.9, src/misc/param.cc, initEnvFunc().
#pragma once

#include <map>
#include <string>

#include "tools/doctor/verdicts.h"

namespace riffle::tools {

// The environment with what NCCL's files add to it.
class JobVariables {
 public:
  // Takes them into this process: $NCCL_CONF_FILE, else ~/.nccl.conf, then /etc/nccl.conf; lines
  // NAME=VALUE, where what is set already stays. Not thread safe.
  explicit JobVariables(Verdicts* verdicts);

  std::string value(const std::string& name) const;  // empty: not set
  // "NCCL_ALGO=Ring", with the file that says so.
  std::string said(const std::string& name) const;
  // A problem that is over when the variable is.
  void problem_unless_unset(const std::string& name, std::string text, Verdicts* verdicts) const;

 private:
  bool take_file(const std::string& path);

  std::map<std::string, std::string> files_;  // by variable: where it comes from
};

}  // namespace riffle::tools
