// The Status of a plugin call that did not succeed, naming the call.
#pragma once

#include <string>

#include "lab/nccl_host/tables/plugin_tables.h"
#include "topology/base/status.h"

namespace riffle::host {

inline Status plugin_status(int result, const std::string& call) {
  static const char* const kNames[] = {"success",        "unhandled CUDA error", "system error",
                                       "internal error", "invalid argument",     "invalid usage",
                                       "remote error",   "in progress"};
  if (result == kSuccess) return Status::ok();
  const std::string name =
      result > 0 && result < 8 ? kNames[result] : "code " + std::to_string(result);
  const std::string text = "the plugin's " + call + " returned " + name;
  return result == 6 ? remote_error(text) : system_error(text);
}

}  // namespace riffle::host
