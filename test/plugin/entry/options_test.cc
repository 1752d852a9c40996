// What the knobs ask for, as the rooms below the border get it.
#include "plugin/entry/options.h"

#include <gtest/gtest.h>

#include "test/plugin/entry/knobs.h"

namespace riffle::options_test {
namespace {

TEST(Options, Defaults) {
  const Options options = options_from(default_config());
  EXPECT_EQ(options.isa, "best");
  EXPECT_FALSE(options.identity.is_needed);
  EXPECT_TRUE(options.identity.is_wanted);  // for the true length of calls
  EXPECT_FALSE(options.identity.says_totals);
  const CollectiveOptions& collective = options.collective;
  EXPECT_EQ(collective.keep_bytes, 0u);
  EXPECT_EQ(collective.connect.collnet, Wish::kAuto);
  EXPECT_EQ(collective.connect.probe, Wish::kAuto);
  EXPECT_TRUE(collective.connect.moves_valid_elements);
  EXPECT_EQ(collective.connect.knobs, decision_knobs(default_config()));
  EXPECT_EQ(collective.session.engine.chunk_bytes, 1u << 20);
  EXPECT_EQ(collective.session.replan.collectives, 4u);
  EXPECT_EQ(collective.session.replan.planned_bytes, kPlannedBytes);
  EXPECT_FALSE(collective.session.survivors.is_on);
  EXPECT_EQ(options.tuner.min_bytes, kSmallCollective);
  EXPECT_TRUE(options.tuner.is_enabled);
  EXPECT_TRUE(options.tuner.falls);
}

TEST(Options, IdentityWhereAModeOrTheUserNeedsIt) {
  const auto identity = [](const Knobs& knobs) {
    return options_from(config_with(knobs)).identity;
  };
  EXPECT_TRUE(identity({{"RIFFLE_SYNC", "ds_sync"}}).is_needed);
  EXPECT_TRUE(identity({{"RIFFLE_SPARSE", "0.01"}}).is_needed);
  EXPECT_TRUE(identity({{"RIFFLE_IDENTITY", "on"}}).says_totals);
  EXPECT_FALSE(identity({{"RIFFLE_VALID_LENGTH", "0"}}).is_wanted);
  const Knobs off = {{"RIFFLE_IDENTITY", "off"}, {"RIFFLE_SYNC", "ds_sync"}};
  EXPECT_FALSE(identity(off).is_wanted);
  EXPECT_FALSE(options_from(config_with(off)).collective.connect.moves_valid_elements);
}

TEST(Options, AnotherLibraryAsNet) {
  const Options own = options_from(config_with({{"RIFFLE_NET", "tcp"}}));
  EXPECT_TRUE(own.wire.name.empty());
  EXPECT_TRUE(own.has_collectives);
  const Options other = options_from(config_with({{"RIFFLE_NET", "ofi"}}));
  EXPECT_EQ(other.wire.name, "ofi");
  EXPECT_FALSE(other.has_collectives);
  const Options beside =
      options_from(config_with({{"RIFFLE_NET", "ofi"}, {"RIFFLE_COLLNET", "on"}}));
  EXPECT_EQ(beside.wire.name, "ofi");
  EXPECT_TRUE(beside.has_collectives);
  EXPECT_EQ(beside.transport.name, kOverLibrary);
  const Options over_tcp =
      options_from(config_with({{"RIFFLE_NET", "ofi"}, {"RIFFLE_COLLNET", "tcp"}}));
  EXPECT_TRUE(over_tcp.has_collectives);
  EXPECT_EQ(over_tcp.transport.name, kOverTcp);
  EXPECT_EQ(over_tcp.collective.connect.collnet, Wish::kOn);
  EXPECT_EQ(options_from(config_with({{"RIFFLE_COLLNET", "on"}})).transport.name, kOverTcp);
}

TEST(Options, EncryptionThatCannotBeKeptIsRefusedAndNeverOff) {
  EXPECT_FALSE(options_from(default_config()).transport.encryption.is_on);
  const Options on = options_from(config_with({{"RIFFLE_ENCRYPT", "1"}}));
  EXPECT_TRUE(on.transport.encryption.is_on);
  EXPECT_TRUE(on.refusal);
  for (const Knobs& knobs : {Knobs{{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_KEY_FILE", "/absent"}},
                             {{"RIFFLE_KEY_FILE", "/x"}}}) {
    const Options refused = options_from(config_with(knobs));
    EXPECT_TRUE(refused.transport.encryption.is_on);
    EXPECT_FALSE(refused.refusal);
  }
  EXPECT_NE(decision_knobs(default_config()).find("RIFFLE_ENCRYPT=0\n"), std::string::npos);
}

TEST(Options, LossesThatAreSurvived) {
  const Options options = options_from(config_with({{"RIFFLE_ON_LOSS", "continue"},
                                                    {"RIFFLE_KEEP_BYTES", "2M"},
                                                    {"RIFFLE_RESCALE", "0"},
                                                    {"RIFFLE_MIN_RATE", "30"}}));
  EXPECT_TRUE(options.collective.session.survivors.is_on);
  EXPECT_FALSE(options.collective.session.survivors.rescales);
  EXPECT_EQ(options.collective.session.replan.least_kbps, 30'000);
  EXPECT_EQ(options.collective.keep_bytes, 2u << 20);
  EXPECT_TRUE(options.collective.connect.survives_losses);
  EXPECT_EQ(options.tuner.min_bytes, 0u) << "over NET a lost node ends an all-reduce of any size";
}

TEST(Options, ConnectEndsWithTheShorterLimit) {
  const SessionOptions a =
      options_from(config_with({{"RIFFLE_CONNECT_TIMEOUT", "5"}})).collective.session;
  EXPECT_EQ(a.connect_timeout_ns, 5'000'000'000u);
  EXPECT_EQ(a.peer_timeout_ns, 60'000'000'000u);
  const SessionOptions b =
      options_from(config_with({{"RIFFLE_PEER_TIMEOUT", "3"}})).collective.session;
  EXPECT_EQ(b.connect_timeout_ns, 3'000'000'000u);
}

TEST(Options, TheRecordAndNet) {
  const Options options = options_from(config_with({{"RIFFLE_RECORD", "/tmp/record/"},
                                                    {"RIFFLE_RECORD_BYTES", "1M"},
                                                    {"RIFFLE_TRACE", "100"},
                                                    {"RIFFLE_PIECE_BYTES", "64K"}}));
  EXPECT_EQ(options.collective.record.path, "/tmp/record/");
  EXPECT_EQ(options.collective.record.max_bytes, 1u << 20);
  EXPECT_EQ(options.collective.record.trace_every, 100u);
  EXPECT_EQ(options.net.piece_bytes, 64u << 10);
}

TEST(Options, DeterministicKeepsThePlan) {
  const Options options = options_from(config_with({{"RIFFLE_DETERMINISTIC", "1"}}));
  EXPECT_EQ(options.collective.session.replan.collectives, 0u);
  EXPECT_TRUE(options.collective.connect.is_deterministic);
}

}  // namespace
}  // namespace riffle::options_test
