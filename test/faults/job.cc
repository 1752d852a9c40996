#include "test/faults/job.h"

#include <barrier>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "plugin/collective/coll_service.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/entry/options.h"
#include "plugin/transport/reactor/reactor.h"
#include "test/own_job.h"

namespace riffle::faults {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCounts[] = {1000, 300'000, 30'000, 400'000, 1, 100'000};

float input(std::size_t i, int node, std::size_t call) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(node) * 3 + call) % 101);
}

constexpr unsigned all_of(int nodes) { return (1u << nodes) - 1; }

// The first element that is not the sum of these nodes' inputs, scaled to `all`; none: the number
// of all elements.
std::size_t first_wrong(const std::vector<float>& sums, std::size_t call, unsigned nodes,
                        unsigned all) {
  const float scale =
      static_cast<float>(std::popcount(all)) / static_cast<float>(std::popcount(nodes));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float sum = 0;
    for (int node = 0; node < std::popcount(all); ++node) {
      if ((nodes >> node & 1) != 0) sum += input(i, node, call);
    }
    const bool is_right = nodes == all ? sums[i] == sum : std::abs(sums[i] / scale - sum) < 0.01F;
    if (!is_right) return i;
  }
  return sums.size();
}

// Where losses are survived: of more than half of the nodes, whichever they are.
bool is_sum_of_survivors(const std::vector<float>& sums, std::size_t call, unsigned all) {
  for (unsigned nodes = 1; nodes <= all; ++nodes) {
    if (2 * std::popcount(nodes) <= std::popcount(all)) continue;
    if (first_wrong(sums, call, nodes, all) == sums.size()) return true;
  }
  return false;
}

// A call of this node threw: an error of its own, which the others hear of when it closes.
thread_local bool has_thrown = false;

// What entry does with exceptions: they are errors of the call. Which may do the progress thread's
// work, so that its points count.
template <class Call>
auto guarded(bool counts, Call&& call) -> decltype(call()) {
  std::optional<Counting> counting;
  if (counts) counting.emplace();
  try {
    return call();
  } catch (const std::exception& e) {
    has_thrown = true;
    return internal_error(e.what());
  }
}

class Job {
 public:
  explicit Job(const Fault& fault)
      : fault_(fault),
        closes_at_once_(fault.lasts || config().on_loss == "continue"),
        comms_(static_cast<std::size_t>(fault.nodes)),
        are_through_(fault.nodes) {
    outcome_.errors.resize(comms_.size());
  }

  Outcome run() {
    if (fault_.phase == Phase::kConnect) start_counting();
    connect();
    if (fault_.phase == Phase::kWork) start_counting();
    on_all_nodes([this](int node) { work(node); });
    outcome_.points = disarm();
    outcome_.has_struck = has_struck();
    return outcome_;
  }

 private:
  void start_counting() const {
    if (fault_.kth == 0) return survey(fault_.point);
    arm(fault_.point, fault_.kth, fault_.lasts);
  }

  template <class Node>
  void on_all_nodes(Node&& node) {
    std::vector<std::thread> threads;
    for (int i = 0; i < fault_.nodes; ++i) threads.emplace_back([&node, i] { node(i); });
    for (std::thread& thread : threads) thread.join();
  }

  void broken(int node, const std::string& what) {
    const std::lock_guard lock(mutex_);
    outcome_.broken += "node " + std::to_string(node) + ": " + what + "\n";
  }

  void connect() {
    std::vector<Handle> handles(comms_.size());
    std::vector<const Handle*> pointers;
    std::vector<coll::Listener*> listeners;
    for (Handle& handle : handles) {
      Result<coll::Listener*> l =
          coll::listen(options_from(config()).transport, 0, testing::own_job(), &handle);
      if (!l) throw std::runtime_error(l.status().message());
      listeners.push_back(*l);
      pointers.push_back(&handle);
    }
    on_all_nodes([&](int node) {
      const auto begin = Clock::now();
      Result<coll::Communicator*> c = guarded(!fault_.lasts, [&] {
        return coll::connect(pointers, node, listeners[node], options_from(config()).collective);
      });
      if (Clock::now() - begin > kLimit) broken(node, "connect took too long");
      if (c) {
        comms_[node] = *c;
      } else {
        outcome_.errors[node] = "connect: " + c.status().message();
      }
      coll::close(listeners[node]);
    });
  }

  void work(int node) {
    coll::Communicator* const c = comms_[node];
    for (std::size_t call = 0; c != nullptr && call < std::size(kCounts); ++call) {
      outcome_.errors[node] = all_reduce(node, c, call);
      if (!outcome_.errors[node].empty()) break;
    }
    if (closes_at_once_ || has_thrown) {
      are_through_.arrive_and_drop();
    } else {
      are_through_.arrive_and_wait();
    }
    if (c == nullptr) return;
    const auto begin = Clock::now();
    coll::close(c);
    if (Clock::now() - begin > kLimit) broken(node, "close took too long");
  }

  // Empty, or the error.
  std::string all_reduce(int node, coll::Communicator* c, std::size_t call) {
    const std::size_t count = kCounts[call];
    std::vector<float> send(count), recv(count);
    for (std::size_t i = 0; i < count; ++i) send[i] = input(i, node, call);
    const Result<coll::Request*> request = guarded(!fault_.lasts, [&] {
      return coll::all_reduce(c, send.data(), recv.data(), count, DataType::kFloat32,
                              ReduceOp::kSum);
    });
    if (!request) return request.status().message();
    if (const std::string error = wait(node, *request); !error.empty()) {
      coll::fence(c, send.data(), count * sizeof(float));
      coll::fence(c, recv.data(), count * sizeof(float));
      return error;
    }
    const unsigned all = all_of(fault_.nodes);
    const std::size_t wrong = first_wrong(recv, call, all, all);
    const bool may_be_of_fewer = config().on_loss == "continue" && has_struck();
    if (wrong < count && !(may_be_of_fewer && is_sum_of_survivors(recv, call, all))) {
      broken(node, "wrong sum in call " + std::to_string(call) + " at " + std::to_string(wrong));
    }
    return "";
  }

  std::string wait(int node, coll::Request* request) {
    const auto deadline = Clock::now() + kLimit;
    while (Clock::now() < deadline) {
      const Result<bool> done =
          guarded(!fault_.lasts, [&] { return coll::test(request, nullptr); });
      if (!done) return done.status().message();
      if (*done) return "";
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    broken(node, "an all-reduce never ended");
    return "never ended";
  }

  const Fault fault_;
  const bool closes_at_once_;
  std::vector<coll::Communicator*> comms_;
  std::barrier<> are_through_;
  std::mutex mutex_;
  Outcome outcome_;
};

void say_nothing(int, unsigned long, const char*, int, const char*, ...) {}

}  // namespace

void set_up_job() {
  setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
  setenv("RIFFLE_COLLNET", "on", 1);
  setenv("RIFFLE_LOG", "warn", 1);
  setenv("RIFFLE_PEER_TIMEOUT", std::to_string(kTimeoutS).c_str(), 1);
  reload_config();
  set_logger(say_nothing);
  // One progress thread for all nodes, which lives as long as the program.
  static const std::shared_ptr<Reactor> reactor =
      Reactor::acquire(options_from(config()).transport);
  reactor->run_and_wait([] { count_on_this_thread(); });
}

Outcome run_job(const Fault& fault) { return Job(fault).run(); }

}  // namespace riffle::faults
