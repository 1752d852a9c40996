#include "lab/nccl_host/communicator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lab/nccl_host/launch_builder.h"
#include "lab/nccl_host/profiler_feed.h"
#include "lab/nccl_host/progress.h"
#include "lab/nccl_host/tables/plugin_call.h"

namespace riffle::host {

class Communicator::Impl {
 public:
  Impl(PluginLibrary& library, Bootstrap& bootstrap, const Options& options)
      : library_(library), bootstrap_(bootstrap), options_(options) {}
  ~Impl() { (void)tear_down(); }

  Status set_up() {
    if (options_.channels < 1 || options_.channels > 64) {
      return invalid_argument("channels = " + std::to_string(options_.channels) + ": 1 to 64");
    }
    if (options_.buffer_bytes % (kSteps * 4096) != 0 || options_.buffer_bytes == 0) {
      return invalid_argument("buffer_bytes = " + std::to_string(options_.buffer_bytes) +
                              ": a multiple of 8 slots of 4 KiB is needed");
    }
    if (options_.comm_id == 0) {
      auto id = draw_id(bootstrap_);
      if (!id) return id.status();
      options_.comm_id = *id;
    }
    profiler_ = std::make_unique<ProfilerFeed>(library_.profiler(), options_.comm_id, ranks(),
                                               bootstrap_.rank());
    if (Status s = set_up_net(); !s) return s;
    if (options_.collnet && library_.collnet() != nullptr) {
      if (Status s = set_up_collnet(); !s) return s;
    }
    if (library_.tuner() != nullptr) {
      const auto n = static_cast<std::size_t>(ranks());
      const int r = library_.tuner()->init(options_.comm_id, n, n, &tuner_context_);
      if (r != kSuccess) return plugin_status(r, "TUNER init");
      tuner_up_ = true;
    }
    progress_ = std::make_unique<Progress>(collnet_.get(), *profiler_, options_.progress);
    return bootstrap_.barrier();
  }

  int ranks() const { return bootstrap_.size(); }

  Status enqueue(const Collective& c) {
    if (ranks() == 1) return invalid_argument("a communicator of one rank has nothing to send");
    if (grouping_) {
      group_.push_back(c);
      return Status::ok();
    }
    return launch({c});
  }

  Status launch(std::vector<Collective> group) {
    if (torn_down_) return invalid_argument("the communicator is destroyed");
    if (Status s = async_error(); !s) return s;
    if (group.empty()) return Status::ok();
    std::vector<Collective> messages;
    std::erase_if(group, [&](const Collective& c) {
      const bool message = c.function == Function::kSend || c.function == Function::kReceive;
      if (message) messages.push_back(c);
      return message;
    });
    LaunchBuilder builder(*net_, collnet_.get(), bootstrap_.rank(), layout());
    std::vector<ProfilerEvent> proxy_ops;
    Status status;
    for (const Scheduled& s :
         schedule(std::move(group), layout(), [&](const Collective&like, std::size_t bytes, int n) {
           return choose(like, bytes, n, &status);
         })) {
      builder.add(s);
      profiler_->launched(s, layout(), &proxy_ops);
    }
    if (!status) return status;
    for (const Collective& m : messages) builder.add_message(m);
    Launch launch = builder.take();
    launch.proxy_ops = std::move(proxy_ops);
    progress_->submit(std::move(launch));
    return Status::ok();
  }

  // Cost model first, then the plugin's tuner; NCCL_ALGO leaves one entry, ring where it cannot
  // serve.
  Algorithm choose(const Collective& like, std::size_t bytes, int pipelined, Status* status) {
    const bool reduces = like.function == Function::kAllReduce;
    CostModel model{ranks(), options_.channels, network_gbs_, reduces && supports(like)};
    float table[kAlgorithms][kProtocols];
    predict(model, like.function, bytes, table);
    if (reduces && options_.algorithm) {
      const int wanted = static_cast<int>(*options_.algorithm);
      if (table[wanted][2] >= 0) return *options_.algorithm;
      return Algorithm::kRing;
    }
    if (tuner_up_) {
      int channels =
          0;  // a wish that NCCL would follow and we do not: the plugin must not have one
      const int r = library_.tuner()->choose(tuner_context_, static_cast<int>(like.function), bytes,
                                             pipelined, table, &channels);
      if (r != kSuccess && status->is_ok()) *status = plugin_status(r, "TUNER getCollInfo");
    }
    return cheapest(table);
  }

  bool supports(const Collective& c) const {
    if (collnet_ == nullptr) return false;
    return supported_[static_cast<std::size_t>(c.type)]
                     [static_cast<std::size_t>(network_op(c.op))] != 0;
  }

  Status wait() {
    const bool done = progress_->wait(options_.deadline_ms, false);
    if (Status s = async_error(); !s) return s;
    if (done) return Status::ok();
    return timeout_error("collectives are not complete after " +
                         std::to_string(options_.deadline_ms) + " ms");
  }

  Status async_error() const {
    if (progress_ == nullptr) return Status::ok();
    return plugin_status(progress_->error(), "transfer (isend, irecv, iallreduce or test)");
  }

  Status destroy() {
    if (torn_down_) return Status::ok();
    Status status;
    if (progress_ != nullptr && !progress_->wait(options_.deadline_ms, true)) {
      status = async_error();
      if (status) status = timeout_error("the proxies are not done at destroy");
    }
    Status end = tear_down();
    return status ? end : status;
  }

  // NCCL's order: progress thread, NET connections, CollNet (deregister before close), contexts.
  Status tear_down() {
    if (torn_down_) return Status::ok();
    torn_down_ = true;
    if (progress_ != nullptr) progress_->stop();
    Status status;
    auto keep = [&](Status s) {
      if (status) status = std::move(s);
    };
    if (net_ != nullptr) keep(net_->disconnect());
    if (collnet_ != nullptr)
      keep(plugin_status(collnet_->detach(), "COLLNET deregMr or closeColl"));
    if (tuner_up_)
      keep(plugin_status(library_.tuner()->finalize(tuner_context_), "TUNER finalize"));
    if (profiler_ != nullptr) profiler_->end();
    if (net_up_) keep(plugin_status(library_.net().finalize(net_context_), "NET finalize"));
    if (collnet_up_) {
      keep(plugin_status(library_.collnet()->finalize(collnet_context_), "COLLNET finalize"));
    }
    return status;
  }

  Layout layout() const {
    return {ranks(), options_.channels, options_.buffer_bytes, options_.release};
  }

  PluginLibrary& library_;
  Bootstrap& bootstrap_;
  Options options_;
  std::unique_ptr<ProfilerFeed> profiler_;
  std::unique_ptr<NetFabric> net_;
  std::unique_ptr<CollNetLink> collnet_;
  std::unique_ptr<Progress> progress_;
  bool grouping_ = false;
  std::vector<Collective> group_;

 private:
  Status set_up_net() {
    NetTable& net = library_.net();
    if (const int r = net.init(options_.comm_id, &net_context_); r != kSuccess) {
      return plugin_status(r, "NET init");
    }
    net_up_ = true;
    int devices = 0;
    if (const int r = net.devices(&devices); r != kSuccess) return plugin_status(r, "NET devices");
    if (devices < 1) return system_error("the plugin reports no NET device");
    DeviceProperties properties;
    if (const int r = net.properties(0, &properties); r != kSuccess) {
      return plugin_status(r, "NET getProperties");
    }
    network_gbs_ = network_rate_gbs(properties.speed_mbps);
    net_ = std::make_unique<NetFabric>(net, net_context_, options_.buffer_bytes);
    std::vector<Endpoint> sends, receives;
    const int n = ranks(), rank = bootstrap_.rank();
    if (n == 1) return Status::ok();
    for (int c = 0; c < options_.channels; ++c) {  // NCCL connects rings first, then trees
      receives.push_back({c, (rank + n - 1) % n, Use::kCollective});
      sends.push_back({c, (rank + 1) % n, Use::kCollective});
    }
    if (Status s = net_->connect(bootstrap_, sends, receives, options_.deadline_ms); !s) return s;
    sends.clear();
    receives.clear();
    for (int c = 0; c < options_.channels; ++c) {
      const TreePlace place = channel_tree(layout(), rank, c);
      std::vector<int> peers = place.down;
      if (place.up >= 0) peers.push_back(place.up);
      for (int p : peers) {
        receives.push_back({c, p, Use::kCollective});
        sends.push_back({c, p, Use::kCollective});
      }
    }
    if (options_.point_to_point) {
      for (int c = 0; c < options_.channels; ++c) {
        for (int d = 1; d < n; ++d) {
          receives.push_back({c, (rank + n - d) % n, Use::kPointToPoint});
          sends.push_back({c, (rank + d) % n, Use::kPointToPoint});
        }
      }
    }
    return net_->connect(bootstrap_, sends, receives, options_.deadline_ms);
  }

  // Fails only when the ranks can no longer agree; a plugin that refuses costs CollNet alone.
  Status set_up_collnet() {
    CollNetTable& table = *library_.collnet();
    collnet_up_ = table.init(options_.comm_id, &collnet_context_) == kSuccess;
    int devices = 0;
    if (collnet_up_ && table.devices(&devices) != kSuccess) devices = 0;
    int fewest = 0;
    if (Status s = minimum(devices, &fewest); !s) return s;
    if (fewest < 1) return Status::ok();

    std::array<std::byte, kHandleBytes> mine{};
    void* listen_comm = nullptr;
    int good = table.listen(collnet_context_, 0, mine.data(), &listen_comm) == kSuccess;
    std::vector<std::byte> handles(kHandleBytes * static_cast<std::size_t>(ranks()));
    if (Status s = bootstrap_.all_gather(mine.data(), handles.data(), kHandleBytes); !s) return s;
    std::vector<void*> pointers;
    for (int r = 0; r < ranks(); ++r) {
      pointers.push_back(handles.data() + kHandleBytes * static_cast<std::size_t>(r));
    }
    void* comm = nullptr;
    if (good) {
      good = table.connect(pointers.data(), ranks(), bootstrap_.rank(), listen_comm, &comm) ==
             kSuccess;
      // As NCCL: closed after a success, even one without an object, and forgotten after an error.
      if (good) table.close_listen(listen_comm);
      good = good && comm != nullptr;
    }
    auto link = std::make_unique<CollNetLink>(table, bootstrap_.rank(), options_.channels,
                                              options_.buffer_bytes, options_.poison_tail);
    if (good) good = link->attach(comm) == kSuccess;
    int all_good = 0;
    if (Status s = minimum(good, &all_good); !s) return s;
    if (all_good == 0) {
      link->detach();
      return Status::ok();
    }
    collnet_ = std::move(link);
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t op = 0; op < kReduceOps; ++op) {
        const int r =
            table.reduce_support(static_cast<int>(t), static_cast<int>(op), &supported_[t][op]);
        if (r != kSuccess) return plugin_status(r, "COLLNET reduceSupport");
      }
    }
    return Status::ok();
  }

  Status minimum(int mine, int* least) {
    std::vector<int> all(static_cast<std::size_t>(ranks()));
    Status s = bootstrap_.all_gather(&mine, all.data(), sizeof mine);
    if (s) *least = *std::min_element(all.begin(), all.end());
    return s;
  }

  void* net_context_ = nullptr;
  void* collnet_context_ = nullptr;
  void* tuner_context_ = nullptr;
  bool net_up_ = false, collnet_up_ = false, tuner_up_ = false, torn_down_ = false;
  double network_gbs_ = 0;
  int supported_[kDataTypes][kReduceOps] = {};
};

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

Result<std::unique_ptr<Communicator>> Communicator::create(PluginLibrary& library,
                                                           Bootstrap& bootstrap,
                                                           const Options& options) {
  auto impl = std::make_unique<Impl>(library, bootstrap, options);
  if (Status s = impl->set_up(); !s) return s;
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

Status Communicator::all_reduce(const void* send, void* receive, std::size_t count, DataType type,
                                Op op) {
  return impl_->enqueue({Function::kAllReduce, send, receive, count, type, op});
}
Status Communicator::all_gather(const void* send, void* receive, std::size_t count, DataType type) {
  return impl_->enqueue({Function::kAllGather, send, receive, count, type});
}
Status Communicator::reduce_scatter(const void* send, void* receive, std::size_t count,
                                    DataType type, Op op) {
  return impl_->enqueue({Function::kReduceScatter, send, receive, count, type, op});
}
Status Communicator::broadcast(const void* send, void* receive, std::size_t count, DataType type,
                               int root) {
  return impl_->enqueue({Function::kBroadcast, send, receive, count, type, Op::kSum, root});
}
Status Communicator::reduce(const void* send, void* receive, std::size_t count, DataType type,
                            Op op, int root) {
  return impl_->enqueue({Function::kReduce, send, receive, count, type, op, root});
}
Status Communicator::send(const void* data, std::size_t bytes, int peer) {
  if (!impl_->options_.point_to_point) return invalid_argument("Options::point_to_point is off");
  return impl_->enqueue({Function::kSend, data, nullptr, bytes, DataType::kInt8, Op::kSum, peer});
}
Status Communicator::receive(void* data, std::size_t bytes, int peer) {
  if (!impl_->options_.point_to_point) return invalid_argument("Options::point_to_point is off");
  return impl_->enqueue(
      {Function::kReceive, nullptr, data, bytes, DataType::kInt8, Op::kSum, peer});
}
void Communicator::group_start() { impl_->grouping_ = true; }
Status Communicator::group_end() {
  impl_->grouping_ = false;
  return impl_->launch(std::exchange(impl_->group_, {}));
}
Status Communicator::wait() { return impl_->wait(); }
Status Communicator::async_error() const { return impl_->async_error(); }
Status Communicator::destroy() { return impl_->destroy(); }
Status Communicator::abort() { return impl_->tear_down(); }
bool Communicator::has_collnet() const { return impl_->collnet_ != nullptr; }
Algorithm Communicator::choice(std::size_t bytes, DataType type, Op op) {
  Status ignored;
  return impl_->choose({Function::kAllReduce, nullptr, nullptr, bytes / size_of(type), type, op},
                       bytes, 1, &ignored);
}
int Communicator::outstanding() const { return impl_->progress_->collnet_outstanding(); }
std::uint64_t Communicator::collnet_calls() const {
  return impl_->collnet_ == nullptr ? 0 : impl_->collnet_->calls();
}

}  // namespace riffle::host
