// Patience: says on a terminal that a command is still at work, from two seconds on. Output that
// goes elsewhere stays as it is.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace riffle::tools {

// A thread of its own, so nothing may fork while one lives. `doing`: "planning", say.
class Patience {
 public:
  explicit Patience(std::string doing);
  ~Patience();  // takes the line away
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  void tell();

  const std::string doing_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

template <class F>
auto patiently(std::string doing, F f) {
  const Patience patience(std::move(doing));
  return f();
}

}  // namespace riffle::tools
