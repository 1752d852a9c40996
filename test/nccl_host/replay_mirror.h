// The other end of every NET connection of a replayed trace: it receives what the trace sends and
// sends what the trace received, eight messages deep, and checks contents. Message i of connection
// c carries a pattern made from (c, i), so that both ends know what must arrive.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_tables.h"
#include "topology/base/status.h"

namespace riffle::host {

void fill_message(std::byte* data, std::size_t bytes, int connection, int index);
bool is_message(const std::byte* data, std::size_t bytes, int connection, int index);

struct MirrorMessage {
  std::size_t bytes = 0;
  int tag = 0;
};

class ReplayMirror {
 public:
  explicit ReplayMirror(NetTable& net) : net_(net), thread_([this] { run(); }) {}
  ~ReplayMirror();
  // comm: this side's object of connection `connection` of the trace, with all its messages in
  // order. sends: whether this side sends.
  Status add(void* comm, int connection, bool sends, std::vector<MirrorMessage> messages);
  Status status();  // the first thing that went wrong, while running

 private:
  struct End {
    void* comm;
    int connection;
    bool sends;
    std::vector<MirrorMessage> messages;
    MemoryRegion memory;
    std::size_t slot_bytes;
    void* mr = nullptr;
    std::vector<void*> requests;
    std::size_t posted = 0, done = 0;
  };
  void run();
  bool step(End& end);
  int post(End& end, void** request);

  NetTable& net_;
  std::mutex mutex_;  // guards ends_ and status_
  std::deque<End> ends_;
  Status status_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace riffle::host
