#include "plugin/collective/base/machine_speed.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/collective/base/slot_memory.h"
#include "plugin/kernels/reduce.h"
#include "plugin/transport/base/frame.h"
#include "plugin/transport/reactor/socket.h"
#include "topology/plan/loads.h"
#include "topology/plan/planner.h"

namespace riffle {
namespace {

constexpr std::size_t kPieceBytes = 128 << 10;
constexpr std::size_t kMessageBytes = kFrameHeaderBytes + 256;
// Apart by factors of 2 to 2.5: a measurement that is a third off lands on the same or the next
// one.
constexpr std::array<std::int64_t, 6> kPricesNs = {500, 1000, 2000, 5000, 10'000, 20'000};
constexpr int kPollMs = 100;  // for what takes microseconds

std::int64_t cpu_ns() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// Megabytes per second of `work`, which handles kPieceBytes per call.
template <class Work>
std::int64_t mbps_of(int calls, Work work) {
  const std::int64_t begin = cpu_ns();
  for (int i = 0; i < calls; ++i) {
    if (!work(i)) return 0;
  }
  const std::int64_t ns = std::max<std::int64_t>(1, cpu_ns() - begin);
  return std::max<std::int64_t>(1, calls * static_cast<std::int64_t>(kPieceBytes) * 1000 / ns);
}

// In mappings of their own: large blocks that are freed raise the size from which the job's malloc
// maps blocks, and stay resident in its arenas.
std::int64_t measure_reduction() {
  constexpr int kPieces = 32;  // 4 MiB each way: beyond the caches that one core has for itself
  constexpr std::size_t kCount = kPieceBytes / sizeof(float);
  const auto own_memory = SlotMemory::map(kPieces * kPieceBytes);
  const auto result_memory = SlotMemory::map(kPieces * kPieceBytes);
  if (!own_memory || !result_memory) return 0;
  const auto own = reinterpret_cast<float*>((*own_memory)->data());
  const auto result = reinterpret_cast<float*>((*result_memory)->data());
  std::fill_n(own, kPieces * kCount, 1.0F);
  std::fill_n(result, kPieces * kCount, 0.0F);
  const std::vector<float> arrived(kCount, 2);
  return mbps_of(kPieces, [&](int i) {
    const std::size_t at = static_cast<std::size_t>(i) * kCount;
    const std::array<const void*, 2> operands = {own + at, arrived.data()};
    reduce(result + at, operands, kCount, DataType::kFloat32, ReduceOp::kSum);
    return true;
  });
}

struct Ends {
  Fd near, far;
};

bool becomes(int fd, short event) {
  pollfd p{fd, event, 0};
  return ::poll(&p, 1, kPollMs) == 1;
}

// A TCP connection of this process with itself.
Ends connect_to_self() {
  const NicAddress loopback = {.interface = "lo", .address = "127.0.0.1"};
  Endpoint endpoint;
  const Result<Fd> listener = listen_on(loopback, &endpoint);
  if (!listener) return {};
  Result<Fd> near = start_connect(to_socket_address(endpoint, 0));
  if (!near || !becomes(listener->get(), POLLIN)) return {};
  int error = 0;
  Fd far = accept_from(listener->get(), &error);
  if (!far.is_open() || !becomes(near->get(), POLLOUT)) return {};
  return {std::move(*near), std::move(far)};
}

// One piece through the connection; this thread does the work of both ends.
bool pass(const Ends& ends, std::vector<char>* piece) {
  std::size_t sent = 0, got = 0;
  while (got < piece->size()) {
    const ssize_t out =
        ::send(ends.near.get(), piece->data() + sent, piece->size() - sent, MSG_NOSIGNAL);
    if (out > 0) sent += static_cast<std::size_t>(out);
    const ssize_t in = ::recv(ends.far.get(), piece->data() + got, piece->size() - got, 0);
    if (in > 0) got += static_cast<std::size_t>(in);
    if (in == 0 || (in < 0 && out <= 0 && !becomes(ends.far.get(), POLLIN))) return false;
  }
  return true;
}

std::int64_t measure_stack(const Ends& ends) {
  if (!ends.near.is_open()) return 0;
  std::vector<char> piece(kPieceBytes);
  const auto work = [&](int) { return pass(ends, &piece); };
  (void)mbps_of(8, work);  // windows open
  return mbps_of(24, work);
}

// The least of a few batches: what disturbs one makes it slower.
std::int64_t measure_message(const Ends& ends) {
  constexpr int kBatches = 5, kMessages = 64;
  if (!ends.near.is_open()) return 0;
  std::vector<char> message(kMessageBytes);
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::int64_t begin = cpu_ns();
    for (int i = 0; i < kMessages; ++i) {
      if (!pass(ends, &message)) return 0;
    }
    least_ns = std::min(least_ns, cpu_ns() - begin);
  }
  return std::max<std::int64_t>(1, least_ns / (2 * kMessages));
}

}  // namespace

MachineSpeed measure_machine() {
  const Ends ends = connect_to_self();
  return {.reduce_mbps = measure_reduction(),
          .stack_mbps = measure_stack(ends),
          .message_ns = measure_message(ends)};
}

MachineSpeed machine_speed() {
  constexpr int kMeasurements = 3;
  static std::mutex mutex;
  static MachineSpeed best;
  static int measurements = 0;
  const std::lock_guard lock(mutex);
  if (measurements < kMeasurements) {
    const MachineSpeed now = measure_machine();
    best.reduce_mbps = std::max(best.reduce_mbps, now.reduce_mbps);
    best.stack_mbps = std::max(best.stack_mbps, now.stack_mbps);
    if (best.message_ns == 0) best.message_ns = now.message_ns;
    if (now.message_ns > 0) best.message_ns = std::min(best.message_ns, now.message_ns);
    ++measurements;
  }
  return best;
}

std::int64_t message_price_ns(const std::vector<MachineSpeed>& nodes) {
  std::int64_t most_ns = 0;
  for (const MachineSpeed& node : nodes) {
    if (node.message_ns <= 0) return kMessageNs;
    most_ns = std::max(most_ns, node.message_ns);
  }
  if (most_ns == 0) return kMessageNs;
  // The nearest by ratio. (What a peer says may be anything.)
  const auto measured = static_cast<double>(most_ns);
  for (std::size_t i = 0; i + 1 < kPricesNs.size(); ++i) {
    const auto price = static_cast<double>(kPricesNs[i]);
    const auto next = static_cast<double>(kPricesNs[i + 1]);
    if (measured / price <= next / measured) return kPricesNs[i];
  }
  return kPricesNs.back();
}

ProcessorTime processor_time(const PlanSet& plans, std::uint64_t bytes, const MachineSpeed& speed) {
  const auto size = static_cast<double>(bytes);
  const double n = plans.lanes[0].nodes;
  double passes = 0;
  for (const Added& a : added_up(plans)) {
    const auto sums = static_cast<double>(a.sums);
    passes = std::max(passes, sums + (static_cast<double>(a.received) - sums) / kInCache);
  }
  passes /= static_cast<double>(kShareUnits) * static_cast<double>(plans.lanes.size());
  return {.stack_us = 2 * size * (n - 1) / n / static_cast<double>(speed.stack_mbps),
          .reduce_us = passes * size / static_cast<double>(speed.reduce_mbps)};
}

MachineShare share_of_machine() {
  MachineShare share;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> share.machine;
  share.processors = std::thread::hardware_concurrency();
  return share;
}

std::int64_t crowding(const std::vector<MachineShare>& nodes) {
  constexpr std::int64_t kThreadsPerNode = 2;
  struct Machine {
    std::int64_t nodes = 0, processors = 0;
  };
  std::map<std::string, Machine> machines;
  std::int64_t most = 1;
  for (const MachineShare& n : nodes) {
    if (n.machine.empty() || n.processors <= 0) continue;
    Machine& m = machines[n.machine];
    ++m.nodes;
    m.processors = std::max(m.processors, n.processors);
    most = std::max(most, kThreadsPerNode * m.nodes / m.processors);
  }
  return most;
}

}  // namespace riffle
