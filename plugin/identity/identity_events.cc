#include "plugin/identity/identity_events.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "plugin/identity/call_identity.h"

namespace riffle::identity {
namespace {

// By NCCL's number. Its own list of names (to 2.30) has all but ncclUint8.
constexpr std::string_view kTypes[] = {"ncclInt8",     "Unknown",        "ncclInt32",
                                       "ncclUint32",   "ncclInt64",      "ncclUint64",
                                       "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                       "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

std::string_view text(const char* s) { return s == nullptr ? std::string_view{} : s; }

bool is_collnet(std::string_view algorithm) {
  return algorithm.starts_with("COLLNET") || algorithm.starts_with("NVLS");
}

}  // namespace

std::uint32_t CommEvents::open(const About& about) {
  const std::scoped_lock lock(mutex_);
  about_ = about;
  ring_.assign(64, {});
  next_number_ = next_begin_ = expected_sequence_ = 0;
  has_gap_ = false;
  coll = 0;
  waiting_ = ~std::uint64_t{0};
  if (++lives_ == 0) ++lives_;
  life_.store(lives_, std::memory_order_release);
  return lives_;
}

void CommEvents::close() {
  const std::scoped_lock lock(mutex_);
  if (waiting() != ~std::uint64_t{0}) ended_waiting_ = lives_;
  waiting_ = ~std::uint64_t{0};
  life_.store(0, std::memory_order_release);
  std::vector<Announced>().swap(ring_);
}

bool CommEvents::announce(const CollStart& start, std::uint64_t stamp, std::uint64_t* number) {
  if (text(start.function) != "AllReduce") return false;
  const std::scoped_lock lock(mutex_);
  if (ring_.empty()) return false;  // closed
  if (start.sequence != expected_sequence_) has_gap_ = true;
  expected_sequence_ = start.sequence + 1;
  const std::string_view algorithm = text(start.algorithm);
  if (!is_collnet(algorithm)) return false;
  if (next_number_ - next_begin_ >= ring_.size() && ring_.size() < kMost) {
    std::vector<Announced> larger(2 * ring_.size());
    for (const Announced& a : ring_) larger[a.number % larger.size()] = a;
    ring_ = std::move(larger);
  }
  Announced a;
  a.number = next_number_++;
  a.sequence = start.sequence;
  a.send = start.send;
  a.recv = start.recv;
  a.count = start.count;
  const auto* type = std::find(std::begin(kTypes), std::end(kTypes), text(start.datatype));
  if (type != std::end(kTypes)) {
    a.type = static_cast<int>(type - kTypes);
    a.element_bytes = kElementBytes[static_cast<std::size_t>(a.type)];
  }
  a.is_chain = algorithm == "COLLNET_CHAIN";
  if (has_gap_)
    a.problem = "NCCL's numbers of all-reduces do not follow on: a Coll event is missing";
  if (a.element_bytes == 0) a.problem = "a Coll event names a datatype that is not known";
  has_gap_ = false;
  *number = a.number;
  a.stamp = stamp;
  at(a.number) = a;
  note_waiting();
  return true;
}

void CommEvents::note_waiting() {
  const bool has_one = next_begin_ < next_number_ && at(next_begin_).number == next_begin_;
  waiting_.store(has_one ? at(next_begin_).stamp : ~std::uint64_t{0}, std::memory_order_relaxed);
}

Announced CommEvents::begin(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  Announced a;
  if (number >= next_number_ || ring_.empty()) {
    a.problem = "a ProxyOp event names a Coll event that is not known";
    return a;
  }
  const bool is_next = number == next_begin_;
  next_begin_ = std::max(next_begin_, number + 1);
  note_waiting();
  a = at(number);
  if (a.number != number) {
    a = {};
    a.problem = "more collectives were announced than are kept before their ProxyOp events came";
  } else if (!is_next && a.problem == nullptr) {
    a.problem = "the ProxyOp events of an announced collective are missing";
  }
  return a;
}

}  // namespace riffle::identity
