// Files that commands write beside their output.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

// A reader finds the file as it was or as it is to be, never a part of it.
inline Status replace_file(const std::string& path, const std::string& text) {
  const std::string written = path + ".tmp." + std::to_string(getpid());
  Status status = write_file(written, text);
  if (status && std::rename(written.c_str(), path.c_str()) != 0) {
    status = system_error("cannot write " + path + ": " + std::strerror(errno));
  }
  if (!status) ::unlink(written.c_str());
  return status;
}

}  // namespace riffle::tools
