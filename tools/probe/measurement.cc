#include "tools/probe/measurement.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "plugin/collective/base/node_lock.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/collective/connect/rack_sources.h"
#include "plugin/collective/session.h"
#include "plugin/entry/options.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/factory.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"
#include "plugin/version.h"
#include "topology/fabric/fabric_file.h"
#include "topology/probe/pair_rates.h"

namespace riffle::tools {
namespace {

constexpr int kDevice = 0;
constexpr std::uint64_t kMs = 1'000'000;
constexpr int kSilentMs = 10'000;  // a host that says nothing, not even a heartbeat, is lost

NodeReport report_of_this_host(int rank, const Device& device) {
  NodeReport r;
  r.rank = rank;
  r.host = own_node_name();
  r.aliases = {r.host};
  for (const NicAddress& a : device.addresses) r.aliases.push_back(a.address);
  r.rack = config().rack;
  r.network = network_of(device.addresses.front());
  r.version = kVersion;
  return r;
}

double mbps(double kbps) { return kbps / 1000; }

ProbeFindings findings_of(const ProbeOutcome& outcome, const Fabric& fabric) {
  ProbeFindings f;
  const probe::Findings& found = outcome.findings;
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const NodeLink& n = fabric.nodes[i];
    f.nodes.push_back(
        {n.name, mbps(static_cast<double>(n.out_kbps)), mbps(static_cast<double>(n.in_kbps)),
         std::min(found.rates.out[i].confidence, found.rates.in[i].confidence), n.rack});
  }
  for (std::size_t r = 0; r < fabric.racks.size(); ++r) {
    const RackLink& rack = fabric.racks[r];
    const auto& confidence = found.racks.confidence;
    f.racks.push_back({rack.name, mbps(static_cast<double>(rack.up_kbps)),
                       mbps(static_cast<double>(rack.down_kbps)),
                       r < confidence.size() ? confidence[r] : 0});
  }
  for (const auto& row : probe::pair_rates(fabric.size(), outcome.observed)) {
    f.pair_mbps.emplace_back();
    for (const std::int64_t kbps : row) {
      f.pair_mbps.back().push_back(mbps(static_cast<double>(kbps)));
    }
  }
  f.latency_us = static_cast<double>(fabric.latency_us);
  f.seconds = static_cast<double>(outcome.time_ns) / 1e9;
  f.bytes = static_cast<double>(outcome.bytes);
  f.rounds = found.rounds;
  f.measured = outcome.observed;
  f.toml = to_toml(fabric);
  f.trouble = outcome.trouble;
  return f;
}

class MeshMeasurement final : public Measurement {
 public:
  MeshMeasurement(std::shared_ptr<const Transport> transport,
                  std::unique_ptr<TransportListener> listener, Fd over)
      : transport_(std::move(transport)),
        reactor_(Reactor::acquire(transport_->options())),
        listener_(std::move(listener)),
        device_(listener_->device()),
        over_(std::move(over)) {}
  ~MeshMeasurement() override {
    reactor_->run_and_wait([this] { stop(); });
  }

  Handle handle() const override { return listener_->handle(); }
  int over_fd() const override { return over_.get(); }

  void start(std::vector<HandleContent> handles, int rank, int timeout_ms) override {
    reactor_->run_and_wait([&] { begin(std::move(handles), rank, timeout_ms); });
  }

  Result<std::optional<ProbeFindings>> outcome() override {
    const std::lock_guard lock(mutex_);
    if (!status_) return status_;
    return std::move(findings_);
  }

 private:
  void begin(std::vector<HandleContent> handles, int rank, int timeout_ms) {
    const int size = static_cast<int>(handles.size());
    SessionOptions options;
    options.connect_timeout_ns = static_cast<std::uint64_t>(timeout_ms) * kMs;
    options.peer_timeout_ns = static_cast<std::uint64_t>(std::min(timeout_ms, kSilentMs)) * kMs;
    SessionHooks hooks;
    hooks.wants_probe = [this](const std::vector<NodeReport>& reports, probe::KnownRacks* known) {
      racks_ = look_up_racks(options_from(config()).collective.connect, reports, known);
      return true;
    };
    hooks.probe_turn = [number = handles.front().communicator] { return try_node_lock(number); };
    hooks.probed = [this](const std::vector<NodeReport>& reports, const ProbeOutcome& outcome) {
      take(reports, outcome);
    };
    hooks.decide = [this](const std::vector<NodeReport>&) {
      Verdict verdict;
      verdict.problem = problem_;
      verdict.fallback_reason = "riffle probe has found what it wanted to know";
      return verdict;
    };
    hooks.connected = [this](Status outcome, const std::string&) { end(std::move(outcome)); };
    hooks.failed = [](const std::string&) {};  // there are no operations to fail
    session_ = std::make_unique<Session>(rank, size, options, reactor_.get(), std::move(hooks));
    mesh_ = transport_->make_mesh(*reactor_, std::move(listener_), std::move(handles), rank,
                                  {.peer_timeout_ns = options.peer_timeout_ns,
                                   .connect_timeout_ns = options.connect_timeout_ns},
                                  session_->sink());
    session_->start(mesh_.get(), report_of_this_host(rank, device_));
  }

  void take(const std::vector<NodeReport>& reports, const ProbeOutcome& outcome) {
    const Result<Fabric> fabric =
        fabric_of_probe(outcome, reports, device_, racks_ ? &*racks_ : nullptr);
    if (fabric) {
      log_overruled(outcome.findings.racks, reports);
      const std::lock_guard lock(mutex_);
      findings_ = findings_of(outcome, *fabric);
      return;
    }
    problem_ = "the network could not be measured: " + fabric.status().message() +
               (outcome.trouble.empty() ? "" : " (" + outcome.trouble + ")");
  }

  void end(Status outcome) {
    {
      const std::lock_guard lock(mutex_);
      status_ = std::move(outcome);
    }
    eventfd_write(over_.get(), 1);
  }

  void stop() {
    const bool clean = session_ && session_->end();
    if (!mesh_) return;
    if (clean) {
      mesh_->close();
    } else {
      mesh_->abort();
    }
    mesh_.reset();
  }

  const std::shared_ptr<const Transport> transport_;
  std::shared_ptr<Reactor> reactor_;
  std::unique_ptr<TransportListener> listener_;  // until start
  const Device& device_;
  Fd over_;

  // Reactor thread only.
  std::unique_ptr<Session> session_;
  std::unique_ptr<TransportMesh> mesh_;
  std::optional<Racks> racks_;
  std::string problem_;

  std::mutex mutex_;
  Status status_;
  std::optional<ProbeFindings> findings_;
};

}  // namespace

std::string own_node_name() {
  if (!config().node_name.empty()) return config().node_name;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

Result<std::unique_ptr<Measurement>> Measurement::open() {
  const auto transport = make_transport(options_from(config()).transport);
  if (!transport) return transport.status();
  auto listener = (*transport)->listen(kDevice, 0);
  if (!listener) return listener.status();
  Fd over = Fd::make([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!over.is_open()) return system_error("no event descriptor: " + errno_text(errno));
  return std::unique_ptr<Measurement>(
      std::make_unique<MeshMeasurement>(*transport, std::move(*listener), std::move(over)));
}

}  // namespace riffle::tools
