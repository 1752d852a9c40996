// Files that commands write beside their output.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "topology/base/status.h"

namespace riffle::tools {

inline Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return Status::ok();
  return system_error("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace riffle::tools
