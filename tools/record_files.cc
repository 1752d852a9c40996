#include "tools/record_files.h"

#include <algorithm>
#include <filesystem>

namespace riffle::tools {

namespace fs = std::filesystem;

Result<std::vector<std::string>> job_files(const std::vector<std::string>& paths,
                                           const std::string& suffix, const std::string& what) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::is_regular_file(path, error)) {
        return invalid_argument(what + " " + path + ": there is no such file or folder");
      }
      files.push_back(path);
      if (fs::is_regular_file(path + ".1", error)) files.push_back(path + ".1");
      continue;
    }
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().string();
      if (name.ends_with(suffix) || name.ends_with(suffix + ".1")) files.push_back(name);
    }
    if (error) return system_error(what + " " + path + ": " + error.message());
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace riffle::tools
