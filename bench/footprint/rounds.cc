#include "bench/footprint/rounds.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "lab/nccl_host/collnet_node.h"
#include "lab/nccl_host/tables/plugin_library.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kBytes = 1 << 20;  // of an all-reduce
constexpr int kSums = 2;                 // per communicator
constexpr int kCalmS = 2;                // until what the last calls left to do is done
constexpr int kEndMs = 10000;            // for links that close behind the scenes
constexpr int kLookMs = 50;

class Process {
 public:
  Process(host::Bootstrap& bootstrap, const Order& order) : bootstrap_(bootstrap), order_(order) {}

  Status begin() {
    auto library = host::PluginLibrary::load(order_.plugin, {});
    if (!library) return library.status();
    library_ = std::move(*library);
    for (host::MemoryRegion* region : {&send_, &receive_}) {
      if (!region->allocate(kBytes)) return system_error("no memory for a buffer");
      std::memset(region->data(), 0, kBytes);
    }
    nodes_.reserve(static_cast<std::size_t>(order_.communicators));
    loaded_ = process_use();
    return Status::ok();
  }

  Status run(int round) {
    Status s = connect();
    if (s) s = tell({round, Stage::kConnected, use()});
    if (s) s = sum();
    std::int64_t idle_us_per_s = 0;
    if (s && order_.idle_s > 0) idle_us_per_s = idle();
    if (s) s = bootstrap_.barrier();
    if (s) {
      Reading used{round, Stage::kUsed, use()};
      used.use.idle_us_per_s = idle_us_per_s;
      s = tell(used);
    }
    nodes_.clear();
    if (s) s = bootstrap_.barrier();
    wait_for_end();
    return s ? tell({round, Stage::kDestroyed, use()}) : s;
  }

 private:
  Status connect() {
    for (int i = 0; i < order_.communicators; ++i) {
      auto node = host::CollNetNode::connect(*library_->collnet(), bootstrap_);
      if (!node) return node.status();
      nodes_.push_back(std::move(*node));
    }
    return bootstrap_.barrier();
  }

  Status sum() {
    for (const auto& node : nodes_) {
      for (int i = 0; i < kSums; ++i) {
        if (Status s = node->all_reduce(send_, receive_, kBytes); !s) return s;
      }
    }
    return bootstrap_.barrier();
  }

  std::int64_t idle() const {
    sleep(kCalmS);
    const std::int64_t before = processor_us();
    sleep(static_cast<unsigned>(order_.idle_s));
    return (processor_us() - before) / order_.idle_s;
  }

  void wait_for_end() const {
    for (int ms = 0; ms < kEndMs; ms += kLookMs) {
      const ProcessUse left = use();
      if (left.connections == 0 && left.threads == 0) return;
      usleep(kLookMs * 1000);
    }
  }

  ProcessUse use() const { return process_use() - loaded_; }

  // No process goes on before all have read.
  Status tell(const Reading& reading) {
    const std::string note(reinterpret_cast<const char*>(&reading), sizeof reading);
    if (Status s = bootstrap_.note(note); !s) return s;
    return bootstrap_.barrier();
  }

  host::Bootstrap& bootstrap_;
  const Order& order_;
  std::shared_ptr<host::PluginLibrary> library_;
  host::MemoryRegion send_, receive_;
  ProcessUse loaded_;
  std::vector<std::unique_ptr<host::CollNetNode>> nodes_;
};

}  // namespace

Status run_rounds(host::Bootstrap& bootstrap, const Order& order) {
  Process process(bootstrap, order);
  Status s = process.begin();
  for (int round = 1; s && round <= order.rounds; ++round) s = process.run(round);
  return s;
}

Reading reading_of(const std::string& note) {
  Reading reading;
  if (note.size() == sizeof reading) std::memcpy(&reading, note.data(), sizeof reading);
  return reading;
}

}  // namespace riffle::bench
