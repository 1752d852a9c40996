// Keeps Riffle out of the library while the process exits: from the moment at which exit() gets to
// the handler below, the library may have torn down what it stands on, so its connections are
// abandoned, not closed. A forked child never enters it either. Any thread.
#pragma once

#include <cstdint>

namespace riffle::nccl_net {

// Held around every call of the library, or of several; they nest.
class LibraryUse {
 public:
  LibraryUse();
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;
  // False: the process exits, or is a fork's child. The library must not be called.
  explicit operator bool() const { return may_; }

 private:
  bool may_;
};

// Has exit() close the door before what was registered with it so far runs: the library's own
// handlers. Again after the library did more: it may register handlers as it goes.
void guard_exit();

}  // namespace riffle::nccl_net
