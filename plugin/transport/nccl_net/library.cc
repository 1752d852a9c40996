#include "plugin/transport/nccl_net/library.h"

#include <dlfcn.h>

#include <algorithm>

#include "plugin/transport/nccl_net/loaded_file.h"

namespace riffle::nccl_net {
namespace {

constexpr char kAccepted[] =
    "; accepted: auto, tcp, next, ofi, the name or path of a library with NCCL's NET tables";

Result<void*> open_first(const std::string& said, const std::string& name) {
  std::string reasons;
  for (const std::string& file : files_of_name(name)) {
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* const reason = ::dlerror();
    reasons.append(reasons.empty() ? "" : "; ").append(reason == nullptr ? file : reason);
  }
  return system_error(said + ": no such library: " + reasons + kAccepted);
}

Library::Tables tables_of(void* handle, const std::string& symbol) {
  Library::Tables tables{};
  for (int v = kFirstVersion; v <= kLastVersion; ++v) {
    tables[static_cast<std::size_t>(v)] = ::dlsym(handle, (symbol + std::to_string(v)).c_str());
  }
  return tables;
}

}  // namespace

std::string Library::versions() const {
  std::string list;
  for (int v = kFirstVersion; v <= kLastVersion; ++v) {
    if (nets[static_cast<std::size_t>(v)] == nullptr) continue;
    list.append(list.empty() ? "v" : ", v").append(std::to_string(v));
  }
  return list;
}

Result<Library> open_library(const LibraryChoice& choice, const void* own) {
  const LoadedFile self = file_holding(own);
  auto name = library_name(choice, self.path);
  if (!name) return name.status();
  std::string said = "RIFFLE_NET=" + choice.name;
  if (choice.name != *name) said += " (" + *name + ")";
  auto handle = open_first(said, *name);
  if (!handle) return handle.status();

  Library library{.name = *name,
                  .path = {},
                  .nets = tables_of(*handle, "ncclNetPlugin_v"),
                  .collnets = tables_of(*handle, "ncclCollNetPlugin_v")};
  const auto found = std::ranges::find_if(library.nets, [](const void* t) { return t != nullptr; });
  const void* const any = found == library.nets.end() ? nullptr : *found;
  if (any == nullptr) {
    ::dlclose(*handle);
    return invalid_argument(said + ": the library has none of ncclNetPlugin_v5 to v12" + kAccepted);
  }
  const LoadedFile file = file_holding(any);
  library.path = file.path;
  if (is_same_build(file, self)) {
    ::dlclose(*handle);
    return invalid_argument(said + ": " + file.path + " is Riffle itself" + kAccepted);
  }
  return library;
}

}  // namespace riffle::nccl_net
