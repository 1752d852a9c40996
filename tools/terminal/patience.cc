#include "tools/terminal/patience.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace riffle::tools {
namespace {

constexpr int kFirstS = 2;

}  // namespace

Patience::Patience(std::string doing) : doing_(std::move(doing)) {
  if (isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { tell(); });
}

Patience::~Patience() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

void Patience::tell() {
  std::unique_lock lock(mutex_);
  int seconds = 0;
  while (!over_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; })) {
    if (++seconds >= kFirstS) std::fprintf(stderr, "\r\033[K%s, %d s", doing_.c_str(), seconds);
  }
  if (seconds >= kFirstS) std::fputs("\r\033[K", stderr);
}

}  // namespace riffle::tools
