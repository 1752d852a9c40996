// The shared object that an address of this process lies in, and whether two of them are the same:
// one file, or copies of one build. Any thread.
#pragma once

#include <sys/types.h>

#include <string>

namespace riffle::nccl_net {

struct LoadedFile {
  std::string path;      // as the loader opened it; empty: the address lies in no file
  dev_t device = 0;      // of the file, 0 if it is gone
  ino_t inode = 0;       //
  std::string build_id;  // the linker's, raw bytes; empty: it has none
};

LoadedFile file_holding(const void* address);

bool is_same_build(const LoadedFile& a, const LoadedFile& b);

}  // namespace riffle::nccl_net
