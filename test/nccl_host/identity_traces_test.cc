// plugin/identity/identity_book.h on every recorded run of real NCCL: what it says of each call is
// compared with what the call's operand really held (`first`; lab/nccl_host/traces/README.md,
// "Content code").
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "plugin/identity/identity_book.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host::identity_traces_test {
namespace {

using identity::CallQueue;
using identity::CollStart;
using identity::IdentityBook;

struct Tally {
  std::uint64_t sure = 0, unsure = 0, without_valid = 0, elements_compared = 0;
};

const void* pointer(std::uint64_t space, std::uint64_t which, std::uint64_t offset) {
  return reinterpret_cast<const void*>((space << 56) + (which << 40) + offset);
}

// {"buf":b,"off":o} or {"mr":m,"off":o}: addresses that do not overlap.
const void* address_of(const Json& place) {
  if (place.contains("buf")) return pointer(1, place["buf"].get<std::uint64_t>() + 1, place["off"]);
  if (place.contains("mr")) return pointer(2, place["mr"].get<std::uint64_t>() + 1, place["off"]);
  return nullptr;
}

class Walk {
 public:
  explicit Walk(const Trace& trace) : trace_(trace) {
    for (const Json& b : trace.header["buffers"]) {
      items_[b["buf"]] = b["item"];
      if (b.contains("op")) averages_[b["item"]] = b["op"] == "avg";
    }
  }

  Tally run() {
    for (const Json& c : trace_.calls) {
      if (c["if"] == "profiler") profiler(c);
      if (c["if"] == "collnet") collnet(c);
      if (::testing::Test::HasFatalFailure()) break;
    }
    return tally_;
  }

 private:
  void profiler(const Json& c) {
    const std::string call = c["call"];
    if (call == "init") {
      contexts_[c["comm"]] = book_.begin_communicator(
          {c["comm"].get<std::uint64_t>() + 1000, c["nRanks"], c["nNodes"]}, &mask_);
    } else if (call == "finalize") {
      book_.end_communicator(contexts_.at(c["comm"]));
    } else if (call == "recordEventState" && c["type"] == "ProxyCtrl" && c["state"] == 15) {
      book_.slept(queues_[c["tid"]]);
    } else if (call == "startEvent") {
      started(c);
    }
  }

  void started(const Json& c) {
    void* context = contexts_.at(c["comm"]);
    const std::string type = c["type"];
    void*& handle = handles_[c["ev"]];
    handle = nullptr;
    const int parent = c["parent"];
    if (type == "CollApi") {
      handle = book_.api_started(context, c.value("graphCaptured", 0) != 0);
    } else if (type == "Coll") {
      const std::string function = c["func"], algorithm = c["algo"], datatype = c["datatype"];
      CollStart start;
      start.sequence = c["seqNumber"];
      start.function = function.c_str();
      start.algorithm = algorithm.c_str();
      start.datatype = datatype.c_str();
      start.send = address_of(c["sendBuff"]);
      start.recv = address_of(c["recvBuff"]);
      start.count = c["count"];
      handle = book_.coll_started(context, handles_[parent], start);
    } else if (type == "ProxyOp") {
      book_.proxy_op_started(
          queues_[c["tid"]], context,
          {handles_[parent], c["channelId"], c["peer"], c["nSteps"], c["chunkSize"]});
    }
  }

  void collnet(const Json& c) {
    const std::string call = c["call"];
    const std::uint64_t coll = c.contains("collComm") ? c["collComm"].get<std::uint64_t>() + 1 : 0;
    if (call == "connect") {
      book_.begin_coll(coll, c["nranks"]);
    } else if (call == "regMr" && c.value("ret", 0) == 0) {
      book_.add_region(coll, address_of(c["data"]), c["size"]);
    } else if (call == "deregMr") {
      book_.drop_region(coll, address_of(c["data"]));
    } else if (call == "closeColl") {
      book_.end_coll(coll);
    } else if (call == "iallreduce" && c.contains("req") && !c["req"].is_null()) {
      accepted(coll, c);
    }
  }

  void accepted(std::uint64_t coll, const Json& c) {
    const CallShape shape{
        coll, address_of(c["send"]), address_of(c["recv"]), c["count"], c["type"], c["op"]};
    CallQueue& queue = queues_[c["tid"]];
    const CallIdentity seen = book_.look(queue, shape);
    const CallIdentity identity = book_.identify(queue, shape);
    ASSERT_EQ(identity.is_sure, seen.is_sure);
    ASSERT_EQ(identity.first_element, seen.first_element);
    if (!identity.is_sure) {
      ++tally_.unsure;
      reasons_[identity.why_not]++;
      ADD_FAILURE() << identity.why_not << ": " << c;
      return;
    }
    ++tally_.sure;
    tally_.without_valid += identity.valid_elements == 0 ? 1 : 0;
    ASSERT_LE(identity.valid_elements, shape.count);
    if (identity.valid_elements != 0) {
      ASSERT_LE(identity.first_element + identity.valid_elements, identity.total_elements);
    }
    compare(identity, c);
    continue_bucket(identity);
  }

  // What the identity says the operand begins with.
  void compare(const CallIdentity& identity, const Json& c) {
    const auto buffer =
        static_cast<int>((reinterpret_cast<std::uintptr_t>(identity.buffer) >> 40) & 0xffff) - 1;
    const int item = items_.at(buffer);
    double factor = trace_.header["ranksPerNode"].get<double>();
    const int type = c["type"];
    if (averages_[item] && (type == 6 || type >= 7))
      factor /= trace_.header["nranks"].get<double>();
    const auto bucket = std::pair{identity.comm_id, identity.bucket};
    const Json& first = c["first"];
    for (std::uint64_t i = 0; i < first.size() && i < identity.valid_elements; ++i) {
      const std::uint64_t element = identity.first_element + i;
      const std::uint64_t block = element / 16, at = element % 16;
      if (at >= 11) continue;  // the check sum, noise
      ASSERT_FALSE(first[i].is_null()) << c;
      const double value = first[i].get<double>() / factor;
      double expected = 0;
      if (at == 0) expected = item & 15;
      if (at == 1) expected = 8;
      if (at == 2) expected = item >> 4;
      if (at == 3) expected = steps_.try_emplace(bucket, std::lround(value)).first->second;
      if (at >= 4) expected = static_cast<double>(block >> (4 * (at - 4)) & 15);
      ASSERT_NEAR(value, expected, 0.05)
          << "element " << element << " of item " << item << ": " << c;
      ++tally_.elements_compared;
    }
  }

  // Calls of a collective are contiguous and cover it once; its step follows on its predecessor's.
  void continue_bucket(const CallIdentity& identity) {
    const auto key = std::pair{identity.comm_id, identity.bucket};
    std::uint64_t& covered = covered_[key];
    ASSERT_EQ(identity.first_element < identity.total_elements ? identity.first_element : covered,
              covered);
    covered += identity.valid_elements;
    if (!identity.is_last) return;
    ASSERT_EQ(covered, identity.total_elements);
    const auto step = steps_.find(key);
    const bool is_coded = step != steps_.end();
    auto [last, is_first] = last_steps_.try_emplace(identity.buffer, is_coded ? step->second : -1);
    if (!is_first && is_coded) {
      ASSERT_EQ(step->second, (last->second + 1) % 16);
      last->second = step->second;
    }
  }

  const Trace& trace_;
  std::map<int, int> items_;
  std::map<int, bool> averages_;
  // Threads of a trace are numbers, so queues stand for them.
  IdentityBook book_;
  int mask_ = 0;
  std::map<int, CallQueue> queues_;
  std::map<int, void*> contexts_;
  std::map<int, void*> handles_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> covered_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, long> steps_;
  std::map<const void*, long> last_steps_;
  std::map<std::string, int> reasons_;
  Tally tally_;
};

class IdentityTraces : public ::testing::TestWithParam<const char*> {};

// 14,123 calls of each release have at least one valid element (traces/README.md): all are found.
TEST_P(IdentityTraces, EveryCallIsAttributedRightly) {
  const std::string folder = std::string(RIFFLE_TRACES) + "/nccl-" + GetParam();
  Tally all;
  for (const std::string& scenario : scenarios(folder)) {
    for (int rank : {0, 1}) {
      SCOPED_TRACE(scenario + " rank " + std::to_string(rank));
      auto trace = read_trace(folder, scenario, rank, true);
      ASSERT_TRUE(trace.is_ok()) << trace.status().message();
      const auto walk = std::make_unique<Walk>(*trace);
      const Tally one = walk->run();
      if (HasFatalFailure()) return;
      all.sure += one.sure;
      all.unsure += one.unsure;
      all.without_valid += one.without_valid;
      all.elements_compared += one.elements_compared;
    }
  }
  RecordProperty("sure", std::to_string(all.sure));
  EXPECT_EQ(all.sure - all.without_valid, 14123U);
  EXPECT_EQ(all.unsure, 0U);
  EXPECT_GT(all.elements_compared, 100000U);
  std::cout << all.sure << " calls sure, " << all.unsure << " not, " << all.without_valid
            << " without a valid element, " << all.elements_compared << " elements compared\n";
}

INSTANTIATE_TEST_SUITE_P(All, IdentityTraces, ::testing::Values("2.28.9", "2.30.7"),
                         [](const auto& info) {
                           std::string name = std::string("nccl_") + info.param;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace riffle::host::identity_traces_test
