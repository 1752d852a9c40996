// plugin/identity/layout.h: learns what repeats, says where the next call stands, and notices at
// the very call when something else comes; alike on ranks whose addresses differ.
#include "plugin/identity/layout.h"

#include <gtest/gtest.h>

#include <random>

namespace riffle::layout_test {
namespace {

using Kind = Layout::Place::Kind;

constexpr std::uint64_t kCall = 131072;  // elements that a call posts

// One rank's job: all-reduces cut into calls of kCall floats.
class Job {
 public:
  explicit Job(std::uintptr_t addresses, const LayoutOptions& options = {})
      : addresses_(addresses), layout_(options) {}

  // All calls of a bucket, at the given buffer; places of the calls.
  std::vector<Layout::Place> bucket(std::uint64_t buffer, std::uint64_t elements,
                                    std::uint64_t comm = 7, bool is_sure = true,
                                    std::uint64_t posted = kCall) {
    std::vector<Layout::Place> places;
    for (std::uint64_t first = 0; first < elements; first += posted) {
      CallShape call{1, nullptr, nullptr, posted, 7, 0};
      CallIdentity identity;
      if (is_sure) {
        identity.is_sure = true;
        identity.comm_id = comm;
        identity.bucket = bucket_;
        identity.buffer = reinterpret_cast<const void*>(addresses_ + (buffer << 32));
        identity.first_element = first;
        identity.valid_elements = std::min(posted, elements - first);
        identity.total_elements = elements;
        identity.is_last = first + posted >= elements;
      }
      const Layout::Place seen = layout_.look(call, identity);
      places.push_back(layout_.take(call, identity));
      // While the sequence is unknown its last bucket may just have closed.
      if (seen.kind != Kind::kLearning) {
        EXPECT_EQ(seen.kind, places.back().kind);
      }
    }
    ++bucket_;
    return places;
  }
  bool is_steady_at(std::uint64_t buffer, std::uint64_t elements) {
    for (const Layout::Place& p : bucket(buffer, elements)) {
      if (p.kind != Kind::kAt) return false;
    }
    return true;
  }
  Layout& layout() { return layout_; }

 private:
  std::uintptr_t addresses_;
  Layout layout_;
  std::uint64_t bucket_ = 0;
};

TEST(Layout, LearnsWhatRepeats) {
  Job job(0x1000);
  // DDP's buckets: the sequence is known once it has been seen twice, that is at the first call of
  // the third time.
  for (int step = 0; step < 2; ++step) {
    for (std::uint64_t b = 1; b <= 3; ++b) {
      for (const auto& p : job.bucket(b, 300000 * b)) EXPECT_EQ(p.kind, Kind::kLearning);
    }
  }
  for (int step = 2; step < 6; ++step) {
    std::vector<std::size_t> positions;
    for (std::uint64_t b = 1; b <= 3; ++b) {
      for (const auto& p : job.bucket(b, 300000 * b)) {
        ASSERT_EQ(p.kind, Kind::kAt);
        EXPECT_EQ(p.begins_step, p.position == 0);
        positions.push_back(p.position);
      }
    }
    EXPECT_EQ(job.layout().steady_steps(), static_cast<std::uint64_t>(step) + 1);
    ASSERT_EQ(positions.size(), 3U + 5 + 7);
    const auto& pieces = job.layout().pieces();
    ASSERT_EQ(pieces.size(), positions.size());
    std::uint64_t valid = 0;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      // In cyclic order, each position once.
      EXPECT_EQ(positions[i], (positions[0] + i) % positions.size());
      valid += pieces[positions[i]].valid;
    }
    EXPECT_EQ(valid, 1800000U);
    EXPECT_EQ(pieces[0].first, 0U);
  }
  EXPECT_EQ(job.layout().deviations(), 0U);
}

TEST(Layout, IsTheSameOnAllRanks) {
  Job a(0x1000), b(0xabc000);
  std::mt19937 random(1);
  for (int step = 0; step < 5; ++step) {
    for (std::uint64_t bucket = 1; bucket <= 4; ++bucket) {
      const auto pa = a.bucket(bucket, 500000 + bucket), pb = b.bucket(5 - bucket, 500000 + bucket);
      for (std::size_t i = 0; i < pa.size(); ++i) {
        EXPECT_EQ(pa[i].kind, pb[i].kind);
        EXPECT_EQ(pa[i].position, pb[i].position);
      }
    }
  }
  EXPECT_TRUE(a.layout().is_known());
  EXPECT_EQ(a.layout().digest(), b.layout().digest());
  Job other(0x1000);
  for (int step = 0; step < 5; ++step) {
    for (std::uint64_t bucket = 1; bucket <= 4; ++bucket) other.bucket(bucket, 500001 + bucket);
  }
  EXPECT_NE(other.layout().digest(), a.layout().digest());
}

// A rank that lost sight of calls learns later and arrives at the same positions and digest, also
// where only addresses tell the buckets apart.
TEST(Layout, DoesNotDependOnWhenItWasLearned) {
  for (const bool are_equal : {false, true}) {
    Job a(0x1000), b(0x9000);
    for (int step = 0; step < 9; ++step) {
      for (std::uint64_t bucket = 0; bucket < 3; ++bucket) {
        const std::uint64_t elements = are_equal ? 400000 : 400000 + 1000 * bucket;
        const bool is_lost = step == 1 && bucket == 1;
        const auto pa = a.bucket(bucket, elements), pb = b.bucket(bucket, elements, 7, !is_lost);
        if (step < 6) continue;
        for (std::size_t i = 0; i < pa.size(); ++i) {
          ASSERT_EQ(pa[i].kind, Kind::kAt);
          ASSERT_EQ(pb[i].kind, Kind::kAt);
          EXPECT_EQ(pa[i].position, pb[i].position);
        }
      }
    }
    EXPECT_GT(a.layout().steady_steps(), b.layout().steady_steps());
    EXPECT_EQ(a.layout().digest(), b.layout().digest());
    EXPECT_EQ(a.layout().pieces().size(), 12U);
  }
}

TEST(Layout, NoticesNewBucketsAtTheirFirstCall) {
  Job job(0x1000);
  // DDP's first step runs in other buckets than all later ones.
  for (std::uint64_t b = 1; b <= 3; ++b) job.bucket(b, 262144 * b);
  for (int step = 0; step < 4; ++step) {
    for (std::uint64_t b = 4; b <= 5; ++b) job.bucket(b, 300000 * b);
  }
  ASSERT_TRUE(job.layout().is_known());
  EXPECT_EQ(job.layout().pieces().size(), 10U + 12);
  EXPECT_EQ(job.layout().deviations(), 0U);
  // The same count, type and operator, but another buffer: only its identity shows it.
  const auto moved = job.bucket(6, 300000 * 4);
  EXPECT_EQ(moved[0].kind, Kind::kDeviates);
  EXPECT_FALSE(moved[0].is_seen_by_all);
  EXPECT_EQ(moved[1].kind, Kind::kLearning);
  EXPECT_EQ(job.layout().digest(), 0U);
  EXPECT_EQ(job.layout().steady_steps(), 0U);
  EXPECT_EQ(job.layout().deviations(), 1U);
}

TEST(Layout, ExtraReductions) {
  Job job(0x1000);
  auto step = [&] {
    bool is_steady = true;
    for (std::uint64_t b = 1; b <= 3; ++b) is_steady = job.is_steady_at(b, 500000 * b) && is_steady;
    return is_steady;
  };
  for (int i = 0; i < 5; ++i) step();
  const std::uint64_t digest = job.layout().digest();
  // A metric of a few bytes travels in a small call: it is outside and disturbs nothing.
  for (int i = 0; i < 20; ++i) {
    if (i % 7 == 3) {
      EXPECT_EQ(job.bucket(9, 1, 7, true, 8192)[0].kind, Kind::kOutside);
    }
    EXPECT_TRUE(step());
  }
  // A large one now and then: noticed at once, and the sequence is found again.
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 40; ++k) step();
    EXPECT_TRUE(job.layout().is_known());
    EXPECT_EQ(job.layout().digest(), digest);
    const auto places = job.bucket(8, 70000, 7, true, 98304);
    EXPECT_EQ(places[0].kind, Kind::kDeviates);
    EXPECT_TRUE(places[0].is_seen_by_all);
  }
  EXPECT_EQ(job.layout().deviations(), 6U);
}

TEST(Layout, TwoPatternsInTurn) {
  Job job(0x1000);
  int steady = 0;
  for (int round = 0; round < 12; ++round) {
    bool is_steady = true;
    for (std::uint64_t b = 1; b <= 3; ++b) is_steady = job.is_steady_at(b, 200000 * b) && is_steady;
    for (std::uint64_t b = 4; b <= 5; ++b) is_steady = job.is_steady_at(b, 200000 * b) && is_steady;
    steady += is_steady ? 1 : 0;
  }
  EXPECT_EQ(steady, 10);
  EXPECT_EQ(job.layout().pieces().back().bucket, 4U);
}

// One scratch buffer five times, then another: found although it begins like a sequence of one.
TEST(Layout, ASequenceThatBeginsLikeAShorterOne) {
  Job job(0x1000);
  std::uint64_t deviations_before_last_rounds = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 5; ++i) job.bucket(1, 1000000);
    job.bucket(2, 1000000);
    if (round == 19) deviations_before_last_rounds = job.layout().deviations();
  }
  EXPECT_TRUE(job.layout().is_known());
  EXPECT_EQ(job.layout().pieces().size(), 6U * 8);
  EXPECT_EQ(job.layout().deviations(), deviations_before_last_rounds);
  EXPECT_LE(deviations_before_last_rounds, 2U);
}

TEST(Layout, UnsureCallsArePlacedByTheirShape) {
  Job job(0x1000);
  for (int i = 0; i < 4; ++i) {
    for (std::uint64_t b = 1; b <= 3; ++b) job.bucket(b, 500000 * b);
  }
  const std::size_t before = job.layout().next_position();
  for (const auto& p : job.bucket(1, 500000, 7, false)) EXPECT_EQ(p.kind, Kind::kAt);
  EXPECT_EQ(job.layout().next_position(), (before + 4) % job.layout().pieces().size());
  const auto other = job.bucket(2, 1000000, 7, false, 2 * kCall);
  EXPECT_EQ(other[0].kind, Kind::kDeviates);
  EXPECT_TRUE(other[0].is_seen_by_all);
}

TEST(Layout, CommunicatorsThatShareACollObject) {
  Job job(0x1000);
  for (int step = 0; step < 4; ++step) {
    job.bucket(1, 500000, 7);
    job.bucket(1, 500000, 8);
  }
  ASSERT_TRUE(job.layout().is_known());
  ASSERT_EQ(job.layout().pieces().size(), 8U);
  EXPECT_NE(job.layout().pieces()[0].comm_id, job.layout().pieces()[4].comm_id);
}

// Buffers that move with every step repeat nothing.
TEST(Layout, MovingBuffersAreNoSequence) {
  Job job(0x1000);
  for (std::uint64_t step = 0; step < 300; ++step) {
    for (std::uint64_t b = 1; b <= 3; ++b) job.bucket(step * 3 + b, 500000 * b);
  }
  EXPECT_FALSE(job.layout().is_known());
  EXPECT_EQ(job.layout().steady_steps(), 0U);
}

// 200 random sequences, each learned by two ranks that see different addresses and lose different
// calls at first; at the end they agree on every call.
TEST(Layout, RandomSequences) {
  std::mt19937_64 random(20261122);
  int known = 0;
  for (int round = 0; round < 200; ++round) {
    struct Bucket {
      std::uint64_t buffer_a, buffer_b, elements;
    };
    std::vector<Bucket> sequence(1 + random() % 12);
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      sequence[i] = {i, 100 - i, kCall / 2 + kCall * (random() % 3)};
    }
    Job a(0x1000), b(0x2000);
    for (int step = 0; step < 12; ++step) {
      for (const Bucket& bucket : sequence) {
        const bool lost_a = step < 4 && random() % 10 == 0, lost_b = step < 4 && random() % 10 == 0;
        const auto pa = a.bucket(bucket.buffer_a, bucket.elements, 7, !lost_a);
        const auto pb = b.bucket(bucket.buffer_b, bucket.elements, 7, !lost_b);
        if (step < 10) continue;
        for (std::size_t i = 0; i < pa.size(); ++i) {
          if (pa[i].kind != Kind::kAt || pb[i].kind != Kind::kAt) continue;
          EXPECT_EQ(pa[i].position, pb[i].position);
        }
      }
    }
    if (!a.layout().is_known() || !b.layout().is_known()) continue;
    ++known;
    EXPECT_EQ(a.layout().digest(), b.layout().digest());
  }
  EXPECT_EQ(known, 200);
}

}  // namespace
}  // namespace riffle::layout_test
