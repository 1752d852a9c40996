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

std::string plugin_file() {
  constexpr char kFile[] = "libnccl-net-riffle.so";
  const std::string folder =
      first_with(kFile, {"../plugin", "../lib", "../lib64", "../lib/x86_64-linux-gnu",
                         "../lib/aarch64-linux-gnu", "."});
  return folder.empty() ? "" : folder + "/" + kFile;
}

std::string plugin_folder() { return std::filesystem::path(plugin_file()).parent_path().string(); }

}  // namespace riffle::tools
