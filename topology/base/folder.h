// What lies in a folder. In the place of std::filesystem::directory_iterator, whose
// increment(error) is noexcept and allocates: where memory runs out there, the process ends.
#pragma once

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

namespace riffle {

// Calls f(std::string_view) with every name but "." and "..", in the system's order; `f` may throw.
// Returns 0, or errno where the folder cannot be read. Allocates nothing that throws.
template <class F>
int for_each_name(const std::string& folder, F&& f) {
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };
  const std::unique_ptr<DIR, Close> entries(::opendir(folder.c_str()));
  if (entries == nullptr) return errno;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") f(name);
  }
}

}  // namespace riffle
