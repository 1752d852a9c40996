#include "bench/soak/worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/soak/holdings.h"
#include "lab/nccl_host/collnet_node.h"
#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_library.h"
#include "topology/base/printed.h"
#include "topology/base/seeded_random.h"

namespace riffle::bench::soak {
namespace {

constexpr std::size_t kMostElements = 256 << 10;  // floats, 1 MiB
// A link is closed when its peer has closed it too, or the peer timeout has passed.
constexpr std::chrono::seconds kMostClosing{kPeerTimeoutS + 4};
constexpr std::uint64_t kWeights = 7;  // times all nodes' bits they are still exact as floats

std::uint64_t digest_of(const float* data, std::size_t count) {
  std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a, by words
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, data + i, sizeof word);
    sum = (sum ^ word) * 0x100000001b3;
  }
  return sum;
}

// Floats of one call; the last one is a vote on whether the job is over.
struct Call {
  Call(const Job& job, int communicator, std::uint64_t number)
      : random(job.seed * 31 + static_cast<std::uint64_t>(communicator) * 1'000'003 + number),
        count(1 + (random.below(4) == 0 ? random.below(64) : random.below(kMostElements))) {}

  float weight(std::size_t i) const {
    return static_cast<float>(1 + (i * 2'654'435'761U + count) % kWeights);
  }
  SeededRandom random;
  std::size_t count;  // without the vote
};

class Communicator {
 public:
  Communicator(const Job& job, std::chrono::seconds limit, Board& board, int rank, int nodes,
               int number, std::unique_ptr<host::CollNetNode> node)
      : job_(job),
        limit_(limit),
        board_(board),
        own_(board.nodes[rank].communicators[number]),
        rank_(rank),
        nodes_(nodes),
        number_(number),
        node_(std::move(node)) {}

  Status allocate() {
    for (host::MemoryRegion* region : {&send_, &receive_}) {
      if (!region->allocate((kMostElements + 1) * sizeof(float))) {
        return system_error("no memory for a buffer");
      }
    }
    return Status::ok();
  }

  void run() {
    sum_until_over();
    own_.is_running = false;
  }

 private:
  void sum_until_over() {
    for (std::uint64_t number = 0;; ++number) {
      own_.sum = number;
      if (board_.lost_since_ms != 0) ++own_.since_loss;
      const Call call(job_, number_, number);
      fill(call);
      const Status done =
          node_->all_reduce(send_, receive_, (call.count + 1) * sizeof(float), limit_);
      if (!done) return ended(done, number);
      const bool is_over = check(call, number);
      ++board_.sums;
      if (is_over) return;
    }
  }
  float* sums() const { return reinterpret_cast<float*>(receive_.data()); }

  void fill(const Call& call) {
    auto* const data = reinterpret_cast<float*>(send_.data());
    for (std::size_t i = 0; i < call.count; ++i) {
      data[i] = call.weight(i) * static_cast<float>(bit_of(rank_));
    }
    data[call.count] = board_.is_over ? 1.0F : 0.0F;
  }

  // What a node did that is lost by then does not count.
  bool check(const Call& call, std::uint64_t number) {
    for (std::size_t i = 0; i < call.count; ++i) {
      const float members = sums()[i] / call.weight(i);
      if (is_possible(members)) continue;
      find(board_, rank_,
           printed("communicator %d, sum %llu, element %zu of %zu: %g is a sum of no nodes that "
                   "may be meant",
                   number_, static_cast<unsigned long long>(number), i, call.count,
                   static_cast<double>(sums()[i])));
      return true;
    }
    own_.members = static_cast<std::uint32_t>(sums()[0] / call.weight(0));
    if ((board_.may_be_left_out & bit_of(rank_)) == 0) compare(call, number);
    return sums()[call.count] > 0;
  }
  bool is_possible(float members) const {
    const std::uint32_t all = bit_of(nodes_) - 1;
    if (!(members >= 1) || members > static_cast<float>(all) || members != std::floor(members)) {
      return false;
    }
    const auto in = static_cast<std::uint32_t>(members);
    return (in & bit_of(rank_)) != 0 && (all & ~in & ~board_.may_be_left_out) == 0;
  }
  void compare(const Call& call, std::uint64_t number) {
    const std::uint64_t mine = (number << 32) | (digest_of(sums(), call.count + 1) & 0xffff'ffff);
    auto& place = board_.digests[number_][number % Board::kKept];
    std::uint64_t there = place;
    while (there == 0 || there >> 32 < number) {
      if (place.compare_exchange_weak(there, mine)) return;
    }
    if (there >> 32 == number && there != mine) {
      find(board_, rank_,
           printed("communicator %d, sum %llu: other bits than another node's", number_,
                   static_cast<unsigned long long>(number)));
    }
  }

  void ended(const Status& why, std::uint64_t number) {
    own_.ended_ms = now_ms();
    if ((board_.may_end & bit_of(rank_)) != 0) return;
    find(board_, rank_,
         printed("communicator %d, sum %llu: ", number_, static_cast<unsigned long long>(number)) +
             why.message());
  }

  const Job& job_;
  const std::chrono::seconds limit_;
  Board& board_;
  Board::Communicator& own_;
  const int rank_, nodes_, number_;
  host::MemoryRegion send_, receive_;
  const std::unique_ptr<host::CollNetNode> node_;  // which closes first: a sum may be under way
};

}  // namespace

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status work(host::Bootstrap& bootstrap, const Job& job, const WorkOptions& options, Board& board) {
  Board::Node& own = board.nodes[bootstrap.rank()];
  const bool logs = std::getenv("RIFFLE_LOG_FILE") != nullptr;  // which stays open
  const Holdings before = holdings(!logs);
  auto library = host::PluginLibrary::load(options.plugin, {.tuner = 0, .profiler = 0});
  if (!library) return library.status();
  std::vector<std::unique_ptr<Communicator>> all;
  for (int i = 0; i < job.communicators; ++i) {
    auto node = host::CollNetNode::connect(*(*library)->collnet(), bootstrap);
    if (!node) return node.status();
    all.push_back(std::make_unique<Communicator>(job, options.sum_limit, board, bootstrap.rank(),
                                                 bootstrap.size(), i, std::move(*node)));
    if (Status s = all.back()->allocate(); !s) return s;
  }
  if (Status s = bootstrap.barrier(); !s) return s;
  own.stage = Board::Stage::kSums;
  ++board.connected;
  std::vector<std::thread> threads;
  for (auto& communicator : all) threads.emplace_back([&] { communicator->run(); });
  for (std::thread& t : threads) t.join();
  own.stage = Board::Stage::kCloses;
  all.clear();
  const std::string left = left_since(before, kMostClosing, !logs);
  if (!left.empty()) find(board, bootstrap.rank(), "its communicators are closed and left " + left);
  own.stage = Board::Stage::kEnded;
  return Status::ok();
}

}  // namespace riffle::bench::soak
