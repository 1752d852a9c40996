// What jobs on emulated networks share: an error is an exception, and waiting has a deadline.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lab/cluster/cluster.h"
#include "plugin/collective/coll_service.h"
#include "plugin/config/config.h"
#include "plugin/entry/options.h"
#include "plugin/net/net_service.h"
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

// In a process of its own: enters the network of a node and does `body`, by these knobs and the
// others that all such jobs have. False: it threw, and `error` says what.
using Knobs = std::vector<std::pair<const char*, std::string>>;
template <class Body>
bool is_done(const Cluster& cluster, int node, const Knobs& knobs, unsigned limit_s, Body body,
             char (&error)[512]) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(limit_s);
  try {
    const Status entered = cluster.enter(node);
    check(entered.is_ok(), entered.message());
    setenv("RIFFLE_SOCKET_IFNAME", "eth0", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RIFFLE_PROBE", "off", 1);
    for (const auto& [name, value] : knobs) setenv(name, value.c_str(), 1);
    reload_config();
    body();
    return true;
  } catch (const std::exception& e) {
    std::strncpy(error, e.what(), sizeof error - 1);
    return false;
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

// NET from one node to another, each of which makes its own end of it.
struct Transfer {
  net::Listener* listener = nullptr;
  net::RecvConnection* receiver = nullptr;
  net::SendConnection* sender = nullptr;
  void close() const {
    if (sender != nullptr) net::close(sender);
    if (receiver != nullptr) net::close(receiver);
    if (listener != nullptr) net::close(listener);
  }
};

inline Transfer receive_end(Meeting& meeting, int node) {
  Transfer end;
  end.listener =
      checked(net::listen(options_from(config()).transport, 0, 0, &meeting.handles[node]));
  ++meeting.listening;
  wait_until([&] { return (end.receiver = checked(net::accept(end.listener))) != nullptr; },
             "no sender");
  return end;
}

inline Transfer send_end(Meeting& meeting, int to) {
  wait_until([&] { return meeting.listening == 1; }, "no listener");
  Transfer end;
  Handle handle = meeting.handles[to];
  const Options options = options_from(config());
  wait_until(
      [&] {
        return (end.sender = checked(net::connect(options.transport, options.net, 0, &handle))) !=
               nullptr;
      },
      "no receiver");
  return end;
}

// To be tested until it is done.
inline net::Request* post(const Transfer& end, void* data, std::size_t size) {
  const int tag = 0;
  net::Request* const request =
      end.sender != nullptr ? checked(net::isend(end.sender, data, size, tag))
                            : checked(net::irecv(end.receiver, {&data, 1}, {&size, 1}, {&tag, 1}));
  check(request != nullptr, "no room for a request");
  return request;
}

}  // namespace riffle::cluster
