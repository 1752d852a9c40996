// Every pattern of the stand-in over the plugin's tables, results checked on every rank.
#include <cstring>
#include <memory>

#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/plugin_under_test.h"

namespace riffle::host::collectives_test {
namespace {

struct Case {
  int ranks;
  Algorithm algorithm;
  int channels;
  std::size_t count;
  DataType type;
  Op op;
  bool in_place;
  bool in_wait = false;  // ProgressOptions
};

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  static const char* const kAlgorithmNames[] = {"tree", "ring", "", "collnet"};
  return std::string(kAlgorithmNames[static_cast<int>(c.algorithm)]) + "_n" +
         std::to_string(c.ranks) + "_ch" + std::to_string(c.channels) + "_count" +
         std::to_string(c.count) + "_type" + std::to_string(static_cast<int>(c.type)) + "_op" +
         std::to_string(static_cast<int>(c.op)) + (c.in_place ? "_inplace" : "") +
         (c.in_wait ? "_inwait" : "");
}

class AllReduce : public ::testing::TestWithParam<Case> {};

TEST_P(AllReduce, IsRightOnEveryRank) {
  RIFFLE_NEEDS_PLUGIN();
  const Case& c = GetParam();
  Options options;
  options.channels = c.channels;
  options.algorithm = c.algorithm;
  options.poison_tail = true;
  options.progress.in_wait = c.in_wait;
  const Status status = run_ranks(c.ranks, {}, options, [&](Communicator& comm, Bootstrap& b) {
    if (c.algorithm == Algorithm::kCollNetChain && !comm.has_collnet()) {
      return internal_error("CollNet was not set up");
    }
    const std::size_t bytes = c.count * size_of(c.type);
    std::vector<std::byte> in(bytes), out(bytes);
    for (unsigned salt = 0; salt < 3; ++salt) {
      fill_pattern(in.data(), c.count, c.type, b.rank(), salt);
      void* result = c.in_place ? in.data() : out.data();
      if (Status s = comm.all_reduce(in.data(), result, c.count, c.type, c.op); !s) return s;
      if (Status s = comm.wait(); !s) return s;
      const std::size_t wrong = count_wrong(result, c.count, c.type, c.op, c.ranks, salt);
      if (wrong != 0) return internal_error(std::to_string(wrong) + " wrong elements");
    }
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

constexpr auto kF32 = DataType::kFloat32;
INSTANTIATE_TEST_SUITE_P(
    Patterns, AllReduce,
    ::testing::Values(Case{2, Algorithm::kRing, 2, 1, kF32, Op::kSum, false},
                      Case{3, Algorithm::kRing, 2, 250, kF32, Op::kSum, true},
                      Case{4, Algorithm::kRing, 2, 8388608 + 5, kF32, Op::kSum, false},
                      Case{5, Algorithm::kRing, 3, 1000003, DataType::kBfloat16, Op::kMax, true},
                      Case{4, Algorithm::kRing, 1, 300001, DataType::kInt32, Op::kAvg, false},
                      Case{2, Algorithm::kTree, 2, 7, kF32, Op::kSum, false},
                      Case{3, Algorithm::kTree, 2, 100000, kF32, Op::kAvg, false},
                      Case{7, Algorithm::kTree, 2, 1000003, kF32, Op::kSum, true},
                      Case{4, Algorithm::kTree, 4, 500001, DataType::kFloat64, Op::kMin, false},
                      Case{2, Algorithm::kCollNetChain, 2, 1, kF32, Op::kSum, false},
                      Case{3, Algorithm::kCollNetChain, 2, 833333, kF32, Op::kSum, true},
                      Case{4, Algorithm::kCollNetChain, 2, 8388608 + 5, kF32, Op::kSum, false},
                      Case{4, Algorithm::kCollNetChain, 1, 81921, kF32, Op::kSum, false},
                      Case{3, Algorithm::kCollNetChain, 12, 5000003, kF32, Op::kSum, false},
                      Case{4, Algorithm::kCollNetChain, 16, 4000001, kF32, Op::kSum, true},
                      Case{4, Algorithm::kRing, 2, 1000003, kF32, Op::kSum, false, true},
                      Case{5, Algorithm::kTree, 2, 100000, kF32, Op::kSum, true, true},
                      Case{3, Algorithm::kCollNetChain, 2, 833333, kF32, Op::kSum, false, true}),
    name_of_case);

TEST(Collectives, OthersOverTheRing) {
  RIFFLE_NEEDS_PLUGIN();
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 230400 + 3;
  const Status status = run_ranks(kRanks, {}, {}, [&](Communicator& comm, Bootstrap& b) -> Status {
    std::vector<float> in(kCount * kRanks), out(kCount * kRanks);
    auto check = [](const char* what, std::size_t wrong) {
      return wrong == 0 ? Status::ok() : internal_error(std::string(what) + ": wrong elements");
    };
    fill_pattern(in.data(), kCount, kF32, b.rank(), 1);
    if (Status s = comm.all_gather(in.data(), out.data(), kCount, kF32); !s) return s;
    if (Status s = comm.wait(); !s) return s;
    for (int r = 0; r < kRanks; ++r) {
      const float* block = out.data() + static_cast<std::size_t>(r) * kCount;
      if (Status s = check("all-gather", count_wrong_copy(block, kCount, kF32, r, 1)); !s) return s;
    }
    fill_pattern(in.data(), kCount * kRanks, kF32, b.rank(), 2);
    if (Status s = comm.reduce_scatter(in.data(), out.data(), kCount, kF32, Op::kSum); !s) return s;
    if (Status s = comm.wait(); !s) return s;
    const std::size_t own = static_cast<std::size_t>(b.rank()) * kCount;
    Status s =
        check("reduce-scatter", count_wrong(out.data(), kCount, kF32, Op::kSum, kRanks, 2, own));
    if (!s) return s;
    for (int root = 0; root < kRanks; ++root) {
      const unsigned salt = 10 + static_cast<unsigned>(root);
      fill_pattern(in.data(), kCount, kF32, b.rank(), salt);
      if (s = comm.broadcast(in.data(), out.data(), kCount, kF32, root); !s) return s;
      if (s = comm.wait(); !s) return s;
      if (s = check("broadcast", count_wrong_copy(out.data(), kCount, kF32, root, salt)); !s)
        return s;
      if (s = comm.reduce(in.data(), out.data(), kCount, kF32, Op::kSum, root); !s) return s;
      if (s = comm.wait(); !s) return s;
      if (b.rank() != root) continue;
      if (s = check("reduce", count_wrong(out.data(), kCount, kF32, Op::kSum, kRanks, salt)); !s)
        return s;
    }
    return Status::ok();
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(Collectives, EveryPairExchangesMessages) {
  RIFFLE_NEEDS_PLUGIN();
  constexpr int kRanks = 4;
  Options options;
  options.point_to_point = true;
  const Status status =
      run_ranks(kRanks, {}, options, [&](Communicator& comm, Bootstrap& b) -> Status {
        for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{900 * 1024 + 7}}) {
          std::vector<std::vector<std::int8_t>> in(kRanks), out(kRanks);
          comm.group_start();
          for (int p = 0; p < kRanks; ++p) {
            const auto i = static_cast<std::size_t>(p);
            in[i].resize(bytes + 1);
            out[i].resize(bytes + 1);
            if (p == b.rank()) continue;
            fill_pattern(in[i].data(), bytes, DataType::kInt8, b.rank(), static_cast<unsigned>(p));
            if (Status s = comm.send(in[i].data(), bytes, p); !s) return s;
            if (Status s = comm.receive(out[i].data(), bytes, p); !s) return s;
          }
          if (Status s = comm.group_end(); !s) return s;
          if (Status s = comm.wait(); !s) return s;
          for (int p = 0; p < kRanks; ++p) {
            if (p != b.rank() &&
                count_wrong_copy(out[static_cast<std::size_t>(p)].data(), bytes, DataType::kInt8, p,
                                 static_cast<unsigned>(b.rank())) != 0) {
              return internal_error("message from rank " + std::to_string(p) + " is wrong");
            }
          }
        }
        return Status::ok();
      });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

// A DDP step: buckets in flight, then the same in one group, CollNet where the cost model says so.
TEST(Collectives, BucketsInFlightAndGrouped) {
  RIFFLE_NEEDS_PLUGIN();
  constexpr int kRanks = 3;
  const std::vector<std::size_t> buckets{262144, 1310720, 1310720, 555555, 1};
  Options options;
  options.poison_tail = true;
  const Status status =
      run_ranks(kRanks, {}, options, [&](Communicator& comm, Bootstrap& b) -> Status {
        for (unsigned step = 0; step < 4; ++step) {
          std::vector<std::vector<float>> data;
          for (std::size_t i = 0; i < buckets.size(); ++i) {
            data.emplace_back(buckets[i]);
            fill_pattern(data[i].data(), buckets[i], kF32, b.rank(),
                         step * 16 + static_cast<unsigned>(i));
          }
          if (step % 2 == 1) comm.group_start();
          for (auto& d : data) {
            if (Status s = comm.all_reduce(d.data(), d.data(), d.size(), kF32, Op::kSum); !s)
              return s;
          }
          if (step % 2 == 1) {
            if (Status s = comm.group_end(); !s) return s;
          }
          if (Status s = comm.wait(); !s) return s;
          for (std::size_t i = 0; i < data.size(); ++i) {
            const std::size_t wrong = count_wrong(data[i].data(), buckets[i], kF32, Op::kSum,
                                                  kRanks, step * 16 + static_cast<unsigned>(i));
            if (wrong != 0) return internal_error("bucket " + std::to_string(i) + " is wrong");
          }
        }
        return Status::ok();
      });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace riffle::host::collectives_test
