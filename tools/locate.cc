#include "tools/locate.h"

#include <filesystem>
#include <initializer_list>

namespace riffle::tools {
namespace {

// The first of some places, relative to the executable, where `file` exists.
std::string first_with(const char* file, std::initializer_list<const char*> places) {
  const std::filesystem::path base = executable_folder();
  for (const char* place : places) {
    const auto folder = (base / place).lexically_normal();
    std::error_code none;
    if (std::filesystem::exists(folder / file, none)) return folder.string();
  }
  return "";
}

}  // namespace

std::string executable_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

std::string profile_folder() {
  return (std::filesystem::path(executable_folder()) / RIFFLE_PROFILES).lexically_normal().string();
}

std::string peer_program_folder() {
  for (const char* program : {"riffle_bench_gloo", "riffle_bench_mpi"}) {
    const std::string folder = first_with(program, {"../bench", "../libexec/riffle"});
    if (!folder.empty()) return folder;
  }
  return executable_folder();
}

PluginPlace plugin_place() {
  constexpr char kFile[] = "libnccl-net-riffle.so", kLink[] = "libnccl-tuner-riffle.so";
  const std::string folder =
      first_with(kFile, {"../plugin", "../lib", "../lib64", "../lib/x86_64-linux-gnu",
                         "../lib/aarch64-linux-gnu", "."});
  if (folder.empty()) return {};
  std::error_code none;
  // A system's folders in LD_LIBRARY_PATH would hide libraries that others bring, such as a
  // conda environment's.
  return {.file = folder + "/" + kFile,
          .is_searched = folder.starts_with("/usr/lib"),
          .has_links = std::filesystem::exists(folder + "/" + kLink, none)};
}

}  // namespace riffle::tools
