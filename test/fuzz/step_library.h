// An NCCL plugin's library of one connection each way, in which nothing happens but by step: the
// test says which request is over, and what the peer's message was. It sees that the contract is
// kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>

#include "plugin/transport/nccl_net/net.h"

namespace riffle::fuzz {

class StepLibrary {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void begins_to_send(std::span<const std::byte> message) = 0;
    virtual void breaks_the_contract(const char* what) = 0;
  };
  struct Request {
    std::span<std::byte> room;
    bool is_receive = false;
    bool is_done = false, is_over = false;  // said by the test; told to the link
    int bytes = 0;                          // that the library tells
  };

  // One at a time. `tells_sizes`: of what came.
  StepLibrary(Watcher& watcher, bool tells_sizes) : watcher_(watcher), tells_sizes_(tells_sizes) {
    here() = this;
    net_.name = "step";
    net_.text = "step (v12)";
    abi::NetV12& t = net_.table;
    t.listen = [](void*, int, void*, void** listener) {
      return here()->call([&] { *listener = here(); });
    };
    t.connect = [](void*, int, void*, void** comm, abi::NetDevHandle**) {
      return here()->call([&] { *comm = here()->is_slow ? nullptr : here(); });
    };
    t.accept = [](void*, void** comm, abi::NetDevHandle**) {
      return here()->call([&] { *comm = here()->is_slow ? nullptr : here(); });
    };
    t.regMr = [](void*, void* data, std::size_t, int, void** region) {
      return here()->call([&] { *region = data; });
    };
    t.deregMr = [](void*, void*) -> abi::NcclResult { return abi::kSuccess; };
    t.isend = [](void*, void* data, std::size_t bytes, int, void*, void*, void** request) {
      return here()->call([&] { *request = here()->begin(data, bytes, false); });
    };
    t.irecv = [](void*, int, void** data, std::size_t* bytes, int*, void**, void**,
                 void** request) {
      return here()->call([&] { *request = here()->begin(*data, *bytes, true); });
    };
    t.test = [](void* request, int* done, int* bytes) {
      return here()->test(*static_cast<Request*>(request), done, bytes);
    };
    t.closeSend = [](void*) { return here()->close(&here()->closed_sends_); };
    t.closeRecv = [](void*) { return here()->close(&here()->closed_receives_); };
    t.closeListen = [](void*) { return here()->close(&here()->closed_listeners_); };
  }
  ~StepLibrary() { here() = nullptr; }
  StepLibrary(const StepLibrary&) = delete;
  StepLibrary& operator=(const StepLibrary&) = delete;

  const nccl_net::Net& net() const { return net_; }
  // The oldest request of its kind that the test has not ended; null: none.
  Request* oldest(bool is_receive) {
    const auto at = std::ranges::find_if(
        requests_, [&](const Request& r) { return r.is_receive == is_receive && !r.is_done; });
    return at == requests_.end() ? nullptr : &*at;
  }
  std::uint64_t receives() const {
    return static_cast<std::uint64_t>(std::ranges::count(requests_, true, &Request::is_receive));
  }

  bool is_slow = false;    // takes nothing
  bool fails = false;      // the next call
  bool is_closed = false;  // the link is over: no call may come

 private:
  // The library's functions have no other way to it.
  static StepLibrary*& here() {
    static StepLibrary* at = nullptr;
    return at;
  }

  template <class F>
  abi::NcclResult call(F&& f) {
    if (is_closed) watcher_.breaks_the_contract("a call of the library after the end");
    if (std::exchange(fails, false)) return abi::kSystemError;
    f();
    return abi::kSuccess;
  }
  abi::NcclResult close(int* count) {
    if (++*count != 1) watcher_.breaks_the_contract("closed twice");
    return abi::kSuccess;
  }
  Request* begin(void* data, std::size_t bytes, bool is_receive) {
    if (is_slow) return nullptr;
    const std::span room(static_cast<std::byte*>(data), bytes);
    if (!is_receive) watcher_.begins_to_send(room);
    requests_.push_back({.room = room, .is_receive = is_receive});
    return &requests_.back();
  }
  abi::NcclResult test(Request& request, int* done, int* bytes) {
    if (request.is_over) watcher_.breaks_the_contract("a request that is over is tested again");
    request.is_over = request.is_done || fails;
    return call([&] {
      *done = request.is_done ? 1 : 0;
      if (request.is_done && (!request.is_receive || tells_sizes_)) *bytes = request.bytes;
    });
  }

  Watcher& watcher_;
  const bool tells_sizes_;
  nccl_net::Net net_;
  int closed_sends_ = 0, closed_receives_ = 0, closed_listeners_ = 0;
  std::deque<Request> requests_;  // which keep their addresses
};

}  // namespace riffle::fuzz
