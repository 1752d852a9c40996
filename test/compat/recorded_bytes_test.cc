// Frames and messages as this wire version has them (wire-N/frames.hex, messages.hex). A change of
// any of them that keeps kFrameVersion fails here; what to do then stands in CONTRIBUTING.md
// (Releases).
//
// Not recorded, as only a running communicator makes them: the three messages of a replanning
// interval but for its rates (adapt/replanner.h), reports of stalls (elastic/stall_watch.h), the
// goodbye of survivors. A change of those needs another kFrameVersion just as well.
#include <gtest/gtest.h>

#include "test/compat/samples.h"

namespace riffle::compat::recorded_bytes_test {
namespace {

void expect_as_recorded(const std::string& name, const Samples& samples) {
  const Records records = records_of_today(name, [&] { return written(samples); });
  EXPECT_EQ(records.all().size(), samples.size()) << "a record of each, and no other";
  for (const Sample& sample : samples) {
    const Bytes& recorded = records.at(sample.name);
    EXPECT_EQ(hex_of(sample.written), hex_of(recorded))
        << sample.name << " is not what wire version " << int{kFrameVersion}
        << " sends: the format has changed, so raise kFrameVersion (CONTRIBUTING.md, Releases)";
    if (sample.reread) {
      EXPECT_EQ(hex_of(sample.reread(recorded)), hex_of(recorded)) << sample.name << " is misread";
    }
  }
}

TEST(RecordedBytes, Frames) { expect_as_recorded("frames", frame_samples()); }

TEST(RecordedBytes, Messages) {
  Samples all = message_samples();
  for (const Samples& more : {protocol_samples(), sparse_samples()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  expect_as_recorded("messages", all);
}

// A type of frame that has no record would change unseen.
TEST(RecordedBytes, EveryTypeOfFrameHasARecord) {
  std::set<int> types;
  for (const Sample& sample : frame_samples()) types.insert(sample.written.at(5));
  for (int type = 1; type <= static_cast<int>(kLastFrameType); ++type) {
    EXPECT_TRUE(types.contains(type)) << type;
  }
}

}  // namespace
}  // namespace riffle::compat::recorded_bytes_test
