#include "topology/fabric/text_file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace riffle {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 16 << 20;  // 65,536 nodes take about 5 MB as a fabric

}  // namespace

Result<std::string> read_text_file(const std::string& path, const std::string& what,
                                   const std::string& knob) {
  const std::string who = what + " " + path + ": ";
  std::error_code error;
  const std::filesystem::path file(path);
  if (!std::filesystem::exists(file, error)) {
    return invalid_argument(who + (error ? error.message() : "there is no such file") + "; check " +
                            knob + ", it needs a path that this node can read");
  }
  // Anything else (a directory, a pipe without a writer) could block or be endless.
  if (!std::filesystem::is_regular_file(file, error)) {
    return invalid_argument(who + "not a regular file");
  }
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size > kMaxFileBytes) {
    return invalid_argument(who + std::to_string(size) + " bytes, accepted at most " +
                            std::to_string(kMaxFileBytes));
  }
  std::string text(size, '\0');
  std::ifstream in(file, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    return system_error(who + "cannot be read");
  }
  return text;
}

}  // namespace riffle
