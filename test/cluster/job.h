// What jobs on emulated networks share: an error is an exception, and waiting has a deadline.
#pragma once

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/collective/coll_service.h"
#include "plugin/config/config.h"
#include "plugin/entry/options.h"
#include "test/own_job.h"

namespace riffle::cluster {

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.status().message());
  return *result;
}

inline void check(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

template <class Condition>
void wait_until(Condition condition, const char* what, int limit_ms = 20000) {
  for (int ms = 0; !condition(); ++ms) {
    check(ms < limit_ms, what);
    usleep(1000);
  }
}

// Where the processes of a job find each other's handles; in memory that they share.
struct Meeting {
  static constexpr int kMost = 8;
  Handle handles[kMost];
  std::atomic<int> listening{0};
};

// The communicator of all `nodes`, by this process's settings.
inline coll::Communicator* connect(Meeting& meeting, int node, int nodes) {
  coll::Listener* const listener = checked(coll::listen(
      options_from(config()).transport, 0, testing::forked_job(), &meeting.handles[node]));
  ++meeting.listening;
  wait_until([&] { return meeting.listening >= nodes; }, "not all nodes listen");
  std::vector<const Handle*> handles;
  for (int n = 0; n < nodes; ++n) handles.push_back(&meeting.handles[n]);
  coll::Communicator* const c =
      checked(coll::connect(handles, node, listener, options_from(config()).collective));
  coll::close(listener);
  check(c != nullptr, "it fell back to NCCL");
  return c;
}

}  // namespace riffle::cluster
