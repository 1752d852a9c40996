#include "plugin/policy/identity_events.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace riffle::identity {
namespace {

struct TypeName {
  std::string_view name;
  int number;
  std::uint64_t bytes;
};

constexpr TypeName kTypes[] = {
    {"ncclInt8", 0, 1},     {"ncclUint8", 1, 1},       {"ncclInt32", 2, 4},
    {"ncclUint32", 3, 4},   {"ncclInt64", 4, 8},       {"ncclUint64", 5, 8},
    {"ncclFloat16", 6, 2},  {"ncclFloat32", 7, 4},     {"ncclFloat64", 8, 8},
    {"ncclBfloat16", 9, 2}, {"ncclFloat8e4m3", 10, 1}, {"ncclFloat8e5m2", 11, 1},
};

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
  if (++lives_ == 0) ++lives_;
  life_.store(lives_, std::memory_order_release);
  return lives_;
}

void CommEvents::close() {
  const std::scoped_lock lock(mutex_);
  life_.store(0, std::memory_order_release);
  std::vector<Announced>().swap(ring_);
}

bool CommEvents::announce(const CollStart& start, std::uint64_t* number) {
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
  a.send = start.send;
  a.recv = start.recv;
  a.count = start.count;
  for (const TypeName& t : kTypes) {
    if (t.name != text(start.datatype)) continue;
    a.type = t.number;
    a.element_bytes = t.bytes;
  }
  a.is_chain = algorithm == "COLLNET_CHAIN";
  if (has_gap_)
    a.problem = "NCCL's numbers of all-reduces do not follow on: a Coll event is missing";
  if (a.element_bytes == 0) a.problem = "a Coll event names a datatype that is not known";
  has_gap_ = false;
  *number = a.number;
  at(a.number) = a;
  return true;
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
