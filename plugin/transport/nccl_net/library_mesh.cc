#include "plugin/transport/nccl_net/library_mesh.h"

#include <optional>
#include <utility>

#include "plugin/transport/nccl_net/library_core.h"

namespace riffle::nccl_net {
namespace {

class LibraryMesh final : public TransportMesh {
 public:
  explicit LibraryMesh(std::shared_ptr<LibraryCore> core) : core_(std::move(core)) {}
  ~LibraryMesh() override {
    if (!is_closed_) core_->abort();
  }

  int rank() const override { return core_->rank(); }
  int size() const override { return core_->size(); }
  std::uint64_t now_ns() const override { return Reactor::now_ns(); }
  void open(int peer) override { core_->open(peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    core_->send(peer, header, payload, cookie, priority);
  }
  LinkActivity activity(int peer) override { return core_->link(peer).account().activity(); }
  void hint(int peer, RateHints hints) override { core_->link(peer).hint(hints); }
  void dismiss(int peer) override { core_->dismiss(peer); }
  void abort() override { core_->abort(); }
  void close() override {
    is_closed_ = true;
    core_->close();
  }
  LinkCounters counters(int peer) const override { return core_->link(peer).account().counters; }
  std::size_t descriptors_to_open() const override {  // the library's own are not known
    return core_->descriptors_to_open();
  }
  std::optional<WireAccount> wire_account(int peer) const override {
    const LibraryLink& link = core_->link(peer);
    if (!link.was_up()) return std::nullopt;
    return link.account().wire();
  }

 private:
  const std::shared_ptr<LibraryCore> core_;
  bool is_closed_ = false;
};

}  // namespace

std::unique_ptr<TransportMesh> make_library_mesh(Reactor& reactor,
                                                 const TransportOptions& transport,
                                                 const LibraryPort& port, TcpListener& listener,
                                                 std::vector<HandleContent> handles, int rank,
                                                 const MeshOptions& options, FrameSink* sink) {
  RIFFLE_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < handles.size(), "rank out of range");
  const int size = static_cast<int>(handles.size());
  auto core = std::make_shared<LibraryCore>(reactor, port, rank, size, options, sink);
  core->start(transport, listener, std::move(handles));
  return std::make_unique<LibraryMesh>(std::move(core));
}

}  // namespace riffle::nccl_net
