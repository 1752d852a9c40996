#include "test/nccl_host/replay_mirror.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lab/nccl_host/tables/plugin_call.h"

namespace riffle::host {
namespace {

constexpr std::size_t kDepth = 8;

std::uint64_t word(int connection, int index, std::size_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(connection) << 48) ^
                    (static_cast<std::uint64_t>(index) << 32) ^ i;
  x *= 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

// Calls f(offset, bytes of this word, value) over a message.
template <class F>
bool each_word(std::size_t bytes, int connection, int index, F&& f) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    if (!f(at, std::min<std::size_t>(8, bytes - at), word(connection, index, at / 8))) return false;
  }
  return true;
}

}  // namespace

void fill_message(std::byte* data, std::size_t bytes, int connection, int index) {
  each_word(bytes, connection, index, [&](std::size_t at, std::size_t n, std::uint64_t v) {
    std::memcpy(data + at, &v, n);
    return true;
  });
}

bool is_message(const std::byte* data, std::size_t bytes, int connection, int index) {
  return each_word(bytes, connection, index, [&](std::size_t at, std::size_t n, std::uint64_t v) {
    return std::memcmp(data + at, &v, n) == 0;
  });
}

ReplayMirror::~ReplayMirror() {
  stop_ = true;
  thread_.join();
  for (End& e : ends_) {
    (void)net_.deregister_memory(e.comm, e.mr);
    (void)(e.sends ? net_.close_send(e.comm) : net_.close_recv(e.comm));
  }
}

Status ReplayMirror::add(void* comm, int connection, bool sends,
                         std::vector<MirrorMessage> messages) {
  End e{comm, connection, sends, std::move(messages), {}, 8, nullptr, {}};
  for (const MirrorMessage& m : e.messages) e.slot_bytes = std::max(e.slot_bytes, m.bytes);
  if (!e.memory.allocate(e.slot_bytes * kDepth)) return system_error("no memory for the mirror");
  e.requests.resize(kDepth);
  const int r = net_.register_memory(comm, e.memory.data(), e.memory.bytes(), &e.mr);
  if (r != kSuccess) return plugin_status(r, "NET regMr (mirror)");
  std::scoped_lock lock(mutex_);
  ends_.push_back(std::move(e));
  return Status::ok();
}

Status ReplayMirror::status() {
  std::scoped_lock lock(mutex_);
  return status_;
}

int ReplayMirror::post(End& e, void** request) {
  const MirrorMessage& m = e.messages[e.posted];
  void* data = e.memory.data() + e.posted % kDepth * e.slot_bytes;
  if (e.sends) {
    fill_message(static_cast<std::byte*>(data), m.bytes, e.connection, static_cast<int>(e.posted));
    return net_.isend(e.comm, data, m.bytes, m.tag, e.mr, request);
  }
  std::size_t bytes = e.slot_bytes;
  int tag = m.tag;
  return net_.irecv(e.comm, 1, &data, &bytes, &tag, &e.mr, request);
}

bool ReplayMirror::step(End& e) {
  bool moved = false;
  if (e.posted < e.messages.size() && e.posted < e.done + kDepth) {
    void* request = nullptr;
    const int r = post(e, &request);
    if (r != kSuccess) status_ = plugin_status(r, "NET isend or irecv (mirror)");
    if (request != nullptr) {
      e.requests[e.posted++ % kDepth] = request;
      moved = true;
    }
  }
  if (e.done < e.posted) {
    int done = 0, size = 0;
    const int r = net_.test(e.requests[e.done % kDepth], &done, &size);
    if (r != kSuccess) status_ = plugin_status(r, "NET test (mirror)");
    if (done != 0) {
      const MirrorMessage& m = e.messages[e.done];
      const std::byte* data = e.memory.data() + e.done % kDepth * e.slot_bytes;
      if (!e.sends && (static_cast<std::size_t>(size) != m.bytes ||
                       !is_message(data, m.bytes, e.connection, static_cast<int>(e.done)))) {
        status_ = internal_error("message " + std::to_string(e.done) + " of connection " +
                                 std::to_string(e.connection) + " arrived wrong");
      }
      ++e.done;
      moved = true;
    }
  }
  return moved;
}

void ReplayMirror::run() {
  while (!stop_) {
    bool moved = false;
    {
      std::scoped_lock lock(mutex_);
      for (End& e : ends_) {
        if (status_) moved |= step(e);
      }
    }
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace riffle::host
