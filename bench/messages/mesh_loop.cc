#include "bench/messages/mesh_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "plugin/transport/factory.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kWindowBytes = 1 << 20;  // EngineOptions::send_bytes
constexpr auto kDeadline = std::chrono::seconds(60);

}  // namespace

class MeshLoop::Sink final : public FrameSink {
 public:
  explicit Sink(MeshLoop& loop) : loop_(loop) {}

  void opened(int) override { loop_.count(&loop_.opened_); }
  Result<std::byte*> get_receive_buffer(int, const FrameHeader& header) override {
    if (place_.size() < header.length + 1u) place_.resize(header.length + 1u);
    return place_.data();
  }
  void arrived(int, const FrameHeader&, std::byte*) override {
    if (++loop_.received_ < loop_.traffic_.frames) return;
    loop_.end_ns_[1] = thread_ns();
    const std::lock_guard lock(loop_.mutex_);
    loop_.is_received_ = true;
    loop_.changed_.notify_all();
  }
  void sent(int peer, std::uint64_t) override {
    loop_.send_next(static_cast<std::size_t>(peer) - 1);
    if (++loop_.sent_ < loop_.traffic_.frames) return;
    loop_.end_ns_[0] = thread_ns();
    const std::lock_guard lock(loop_.mutex_);
    loop_.is_sent_ = true;
    loop_.changed_.notify_all();
  }
  void departed(int) override {}
  void lost(int, const Status& why) override { loop_.fail(why); }
  void failed(const Status& why) override { loop_.fail(why); }

 private:
  MeshLoop& loop_;
  std::vector<std::byte> place_;
};

Result<std::unique_ptr<MeshLoop>> MeshLoop::connect(std::size_t peers, bool encrypts) {
  std::unique_ptr<MeshLoop> self(new MeshLoop);
  if (Status s = self->open(peers, encrypts); !s) return s;
  return self;
}

Status MeshLoop::open(std::size_t peers, bool encrypts) {
  TransportOptions options;
  options.devices = {.rule = "=lo", .rule_source = "riffle_message_bench"};
  options.threads.count = 2;
  options.streams = 1;
  if (encrypts) options.encryption.is_on = true;
  const auto transport = make_transport(options);
  if (!transport) return transport.status();
  std::array<std::shared_ptr<Reactor>, 2> reactors;
  for (auto& reactor : reactors) reactor = Reactor::acquire(options);
  std::vector<std::unique_ptr<TransportListener>> listeners;
  std::vector<HandleContent> handles;
  for (std::size_t rank = 0; rank <= peers; ++rank) {
    auto listener = (*transport)->listen(0, 0);
    if (!listener) return listener.status();
    handles.push_back((*listener)->content());
    listeners.push_back(std::move(*listener));
  }
  nodes_.resize(peers + 1);
  for (std::size_t rank = 0; rank <= peers; ++rank) {
    Node& node = nodes_[rank];
    node.reactor = reactors[rank == 0 ? 0 : 1];
    node.sink = std::make_unique<Sink>(*this);
    node.reactor->run_and_wait([&] {
      node.mesh = (*transport)
                      ->make_mesh(*node.reactor, std::move(listeners[rank]), handles,
                                  static_cast<int>(rank), {}, node.sink.get());
    });
  }
  for (std::size_t rank = 1; rank <= peers; ++rank) {
    nodes_[0].reactor->run_and_wait([&] { nodes_[0].mesh->open(static_cast<int>(rank)); });
    nodes_[rank].reactor->run_and_wait([&] { nodes_[rank].mesh->open(0); });
  }
  return wait([&] { return opened_ == 2 * peers; }, "links did not come up");
}

MeshLoop::~MeshLoop() {
  for (Node& node : nodes_) {
    if (!node.reactor) continue;
    node.reactor->run_and_wait([&] {
      if (node.mesh) node.mesh->close();
      node.mesh.reset();
    });
  }
}

void MeshLoop::count(std::size_t* counter) {
  const std::lock_guard lock(mutex_);
  ++*counter;
  changed_.notify_all();
}

void MeshLoop::fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (status_) status_ = why;
  changed_.notify_all();
}

template <class Condition>
Status MeshLoop::wait(Condition condition, const char* what) {
  std::unique_lock lock(mutex_);
  const bool in_time = changed_.wait_for(lock, kDeadline, [&] { return !status_ || condition(); });
  if (!status_) return status_;
  return in_time ? Status::ok() : timeout_error(what);
}

void MeshLoop::send_next(std::size_t peer) {
  if (unsent_[peer] == 0) return;
  const std::uint64_t number = unsent_[peer]--;
  FrameHeader header;
  header.length = static_cast<std::uint32_t>(traffic_.bytes);
  nodes_[0].mesh->send(static_cast<int>(peer) + 1, header, std::span(source_).first(traffic_.bytes),
                       number, 1);
}

Result<Use> MeshLoop::run(const Traffic& traffic) {
  const std::size_t peers = nodes_.size() - 1;
  const auto on_receiver = [&](auto f) { nodes_[1].reactor->run_and_wait(f); };
  traffic_ = traffic;
  source_.assign(traffic.bytes, std::byte{1});
  sent_ = 0;
  is_sent_ = is_received_ = false;
  on_receiver([&] {
    received_ = 0;
    start_ns_[1] = thread_ns();
  });
  const std::size_t ahead =
      std::clamp<std::size_t>(kWindowBytes / traffic.bytes / peers, 1, traffic.ahead);
  nodes_[0].reactor->run_and_wait([&] {
    start_ns_[0] = thread_ns();
    unsent_.assign(peers, traffic.frames / peers);
    for (std::size_t i = 0; i < traffic.frames % peers; ++i) ++unsent_[i];
    for (std::size_t i = 0; i < ahead; ++i) {
      for (std::size_t peer = 0; peer < peers; ++peer) send_next(peer);
    }
  });
  if (Status s = wait([&] { return is_sent_ && is_received_; }, "frames did not arrive"); !s) {
    return s;
  }
  return Use{end_ns_[0] - start_ns_[0], end_ns_[1] - start_ns_[1]};
}

}  // namespace riffle::bench
