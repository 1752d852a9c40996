// Another NCCL plugin's shared object, opened as NCCL opens it: dlopen(RTLD_NOW | RTLD_LOCAL), its
// NET and COLLNET tables looked up by name and version. It stays loaded for the life of the
// process, as NCCL's own unloading would end threads that a plugin may still have. Any thread.
#pragma once

#include <array>
#include <string>

#include "plugin/transport/nccl_net/library_name.h"
#include "topology/base/status.h"

namespace riffle::nccl_net {

inline constexpr int kFirstVersion = 5, kLastVersion = 12;

struct Library {
  std::string name;                                          // as RIFFLE_NET or the list has it
  std::string path;                                          // of the file
  using Tables = std::array<const void*, kLastVersion + 1>;  // of version N at N; null: absent
  Tables nets{}, collnets{};  // ncclNetPlugin_vN, ncclCollNetPlugin_vN

  std::string versions() const;  // "v8, v9"
};

// An error names what was tried and why it did not do: no such file, symbols that are missing, no
// NET table, or the library is the shared object that `own` lies in (or a copy of it).
Result<Library> open_library(const LibraryChoice& choice, const void* own);

}  // namespace riffle::nccl_net
