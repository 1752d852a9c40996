#include "bench/soak/holdings.h"

#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>
#include <vector>

namespace riffle::bench::soak {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{20};

std::string difference(const Holdings& before, const Holdings& now) {
  std::string text;
  for (const auto& [number, what] : now.descriptors) {
    if (before.descriptors.contains(number)) continue;
    text += (text.empty() ? "" : ", ") + ("descriptor " + number + " (" + what + ")");
  }
  if (now.threads > before.threads) {
    text += (text.empty() ? "" : ", ") + std::to_string(now.threads - before.threads) + " threads";
  }
  return text;
}

}  // namespace

Holdings holdings(bool with_files) {
  Holdings all;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) entries.push_back(entry.path());
  for (const fs::path& entry : entries) {
    std::error_code error;  // the iterator's own is gone by now
    const fs::path what = fs::read_symlink(entry, error);
    if (error || (!with_files && fs::is_regular_file(what, error))) continue;
    all.descriptors[entry.filename().string()] = what.string();
  }
  const fs::directory_iterator threads("/proc/self/task");
  all.threads = static_cast<std::size_t>(std::distance(threads, fs::directory_iterator()));
  return all;
}

std::string left_since(const Holdings& before, std::chrono::seconds most, bool with_files) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  for (;;) {
    std::string left = difference(before, holdings(with_files));
    if (left.empty() || std::chrono::steady_clock::now() > deadline) return left;
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace riffle::bench::soak
