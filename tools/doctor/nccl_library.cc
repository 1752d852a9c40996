#include "tools/doctor/nccl_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "tools/doctor/nccl_release.h"

namespace riffle::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kNcclFile[] = "libnccl.so.2";

// It stays loaded: NCCL has threads and destructors that do not care for more.
NcclLibrary open_nccl(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {};
  NcclLibrary found;
  auto* const get = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  link_map* map = nullptr;
  if (get == nullptr || get(&found.release) != 0) return {};
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) found.path = map->l_name;
  return found;
}

// Where packages of Python below `prefix` have it, and conda's own.
std::vector<fs::path> places_below(const fs::path& prefix) {
  std::vector<fs::path> folders = {prefix / "lib"};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", none)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      folders.push_back(entry.path() / packages / "nvidia/nccl/lib");
    }
  }
  return folders;
}

NcclLibrary first_in(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    const fs::path file = (folder / kNcclFile).lexically_normal();
    std::error_code none;
    if (!fs::exists(file, none)) continue;
    if (NcclLibrary found = open_nccl(file.string()); found.release != 0) return found;
  }
  return {};
}

void add_below(const char* variable, const char* subfolder, std::vector<fs::path>* folders) {
  const char* const prefix = std::getenv(variable);
  if (prefix == nullptr || *prefix == '\0') return;
  for (fs::path& folder : places_below(fs::path(prefix) / subfolder)) {
    folders->push_back(std::move(folder));
  }
}

std::vector<fs::path> loader_folders() {
  std::vector<fs::path> folders;
  const char* const list = std::getenv("LD_LIBRARY_PATH");
  std::istringstream in(list == nullptr ? "" : list);
  for (std::string folder; std::getline(in, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

// Of the wheel that brought Riffle, of the environments that are active.
std::vector<fs::path> environment_folders(const PluginPlace& beside) {
  std::vector<fs::path> folders;
  if (!beside.file.empty()) {
    folders.push_back(fs::path(beside.file).parent_path() / "../../nvidia/nccl/lib");
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) add_below(variable, "", &folders);
  return folders;
}

}  // namespace

NcclLibrary find_nccl(const PluginPlace& beside) {
  // PyTorch's own path comes before the system's libraries, and after LD_LIBRARY_PATH.
  NcclLibrary found = first_in(loader_folders());
  if (found.release == 0) found = first_in(environment_folders(beside));
  if (found.release == 0) found = open_nccl(kNcclFile);
  if (found.release == 0) {
    std::vector<fs::path> folders;
    add_below("HOME", ".local", &folders);
    for (fs::path& folder : places_below("/usr/local")) folders.push_back(std::move(folder));
    found = first_in(folders);
  }
  return found;
}

int check_nccl(const NcclLibrary& here, int asked, Verdicts* verdicts) {
  const int release = asked != 0 ? asked : here.release;
  if (release == 0) return 0;
  const bool is_here = here.release == release;
  verdicts->good("NCCL " + release_name(release) + (is_here ? " is " + here.path + ", and" : "") +
                 " reads " + to_text(tables_read(release)));
  if (!is_here && here.release != 0) {
    verdicts->note("NCCL here is " + release_name(here.release) + ", " + here.path +
                   ": --nccl names another release");
  }
  return release;
}

}  // namespace riffle::tools
