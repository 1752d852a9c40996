// RIFFLE_THREADS as a test wants it, for as long as this lives. No reactor may be there meanwhile
// that was made before.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "plugin/config/config.h"

namespace riffle {

class SeveralThreads {
 public:
  explicit SeveralThreads(int count) {
    if (const char* const before = ::getenv(kName)) before_ = before;
    ::setenv(kName, std::to_string(count).c_str(), 1);
    reload_config();
  }
  ~SeveralThreads() {
    if (before_) {
      ::setenv(kName, before_->c_str(), 1);
    } else {
      ::unsetenv(kName);
    }
    reload_config();
  }
  SeveralThreads(const SeveralThreads&) = delete;
  SeveralThreads& operator=(const SeveralThreads&) = delete;

 private:
  static constexpr char kName[] = "RIFFLE_THREADS";
  std::optional<std::string> before_;
};

}  // namespace riffle
