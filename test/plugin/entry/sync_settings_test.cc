// Which mode RIFFLE_SYNC gets, and what it is refused for.
#include "plugin/entry/sync_settings.h"

#include <gtest/gtest.h>

#include <string>

#include "test/plugin/entry/knobs.h"

namespace riffle::sync_settings_test {
namespace {

SyncSettings with(const Knobs& knobs) { return sync_settings(config_with(knobs)); }

TEST(SyncSettings, ExactUnlessAskedForAndUnderAnOptimizerThatBearsIt) {
  EXPECT_EQ(with({}).mode, SyncMode::kExact);
  EXPECT_EQ(with({}).refusal, "");
  for (const char* mode : {"ds_sync", "moshpit", "shadow_sync"}) {
    const SyncSettings refused = with({{"RIFFLE_SYNC", mode}});
    EXPECT_EQ(refused.mode, SyncMode::kExact) << mode;
    EXPECT_NE(refused.refusal.find("RIFFLE_OPTIMIZER=sgd"), std::string::npos) << refused.refusal;
    const SyncSettings taken = with({{"RIFFLE_SYNC", mode}, {"RIFFLE_OPTIMIZER", "sgd"}});
    EXPECT_STREQ(name_of(taken.mode), mode);
    EXPECT_EQ(taken.refusal, "");
  }
}

TEST(SyncSettings, EveryModeWhereLossesAreSurvived) {
  for (const char* mode : {"ds_sync", "moshpit", "shadow_sync"}) {
    const SyncSettings s =
        with({{"RIFFLE_SYNC", mode}, {"RIFFLE_OPTIMIZER", "sgd"}, {"RIFFLE_ON_LOSS", "continue"}});
    EXPECT_EQ(s.mode, sync_mode_of(mode));
    EXPECT_EQ(s.refusal, "");
    EXPECT_TRUE(s.survives_losses);
  }
  const SyncSettings s = with({{"RIFFLE_SPARSE", "0.01"}, {"RIFFLE_ON_LOSS", "continue"}});
  EXPECT_EQ(s.mode, SyncMode::kSparse);
  EXPECT_TRUE(s.survives_losses);
  EXPECT_FALSE(with({{"RIFFLE_SPARSE", "0.01"}}).survives_losses);
}

TEST(SyncSettings, MoshpitWithAllLevelsIsExactUnderEveryOptimizer) {
  const SyncSettings all = with({{"RIFFLE_SYNC", "moshpit"}, {"RIFFLE_MOSHPIT_LEVELS", "all"}});
  EXPECT_EQ(all.mode, SyncMode::kExact);
  EXPECT_TRUE(all.all_levels);
  EXPECT_EQ(all.refusal + all.note, "");
  EXPECT_FALSE(with({{"RIFFLE_SYNC", "moshpit"}, {"RIFFLE_OPTIMIZER", "sgd"}}).all_levels);
  EXPECT_FALSE(with({{"RIFFLE_SYNC", "ds_sync"}, {"RIFFLE_MOSHPIT_LEVELS", "all"}}).all_levels);
  const SyncSettings both =
      with({{"RIFFLE_SYNC", "moshpit"}, {"RIFFLE_MOSHPIT_LEVELS", "all"}, {"RIFFLE_PLAN", "ring"}});
  EXPECT_FALSE(both.all_levels);
  EXPECT_NE(both.note.find("RIFFLE_PLAN=ring"), std::string::npos) << both.note;
}

TEST(SyncSettings, NoModeWithoutIntervals) {
  for (const auto& [name, value] :
       {std::pair{"RIFFLE_EPOCH", "0"}, std::pair{"RIFFLE_DETERMINISTIC", "1"}}) {
    const SyncSettings s =
        with({{"RIFFLE_SYNC", "ds_sync"}, {"RIFFLE_OPTIMIZER", "sgd"}, {name, value}});
    EXPECT_EQ(s.mode, SyncMode::kExact);
    EXPECT_NE(s.refusal.find(name), std::string::npos) << s.refusal;
  }
}

TEST(SyncSettings, SparseTakesADensityAndNoOptimizer) {
  const SyncSettings plain = with({{"RIFFLE_SPARSE", "0.02"}});
  EXPECT_EQ(plain.mode, SyncMode::kSparse);
  EXPECT_EQ(plain.refusal + plain.note, "");
  EXPECT_EQ(plain.sparse.density, 0.02);
  EXPECT_FALSE(plain.sparse.is_auto);
  EXPECT_EQ(plain.sparse.residual, sparse::ResidualPolicy::kGlobal);
  const SyncSettings chosen = with({{"RIFFLE_SPARSE", "auto:1e-3"},
                                    {"RIFFLE_SPARSE_RESIDUAL", "ef21"},
                                    {"RIFFLE_SPARSE_TEAMS", "2"}});
  EXPECT_TRUE(chosen.sparse.is_auto);
  EXPECT_EQ(chosen.sparse.density, 1e-3);
  EXPECT_EQ(chosen.sparse.teams, 2u);
  EXPECT_EQ(chosen.sparse.residual, sparse::ResidualPolicy::kEf21);
  EXPECT_EQ(with({{"RIFFLE_SPARSE", "off"}}).mode, SyncMode::kExact);
  for (const char* wrong : {"0", "1.5", "-0.1", "auto:", "auto", "nan", "0.1x", "yes"}) {
    const SyncSettings s = with({{"RIFFLE_SPARSE", wrong}});
    EXPECT_EQ(s.mode, SyncMode::kExact) << wrong;
    EXPECT_NE(s.note.find(std::string("RIFFLE_SPARSE=") + wrong), std::string::npos) << s.note;
  }
}

TEST(SyncSettings, SparseIsRefusedBesideOthers) {
  for (const auto& [name, value] :
       {std::pair{"RIFFLE_SYNC", "ds_sync"}, std::pair{"RIFFLE_EPOCH", "0"},
        std::pair{"RIFFLE_DETERMINISTIC", "1"}}) {
    const SyncSettings s =
        with({{"RIFFLE_SPARSE", "0.01"}, {"RIFFLE_OPTIMIZER", "sgd"}, {name, value}});
    EXPECT_EQ(s.mode, SyncMode::kExact) << name;
    EXPECT_NE(s.refusal.find("RIFFLE_SPARSE=0.01"), std::string::npos) << s.refusal;
    EXPECT_NE(s.refusal.find(name), std::string::npos) << s.refusal;
  }
}

TEST(SyncSettings, TheDensityComesDownInStages) {
  SparseSettings s{.density = 0.01, .ramp_steps = 30};
  EXPECT_EQ(density_in(s, 0), 0.25);
  EXPECT_EQ(density_in(s, 9), 0.25);
  EXPECT_EQ(density_in(s, 10), 0.0625);
  EXPECT_EQ(density_in(s, 29), 0.015625);
  EXPECT_EQ(density_in(s, 30), 0.01);
  s.density = 0.5;  // nothing to come down to
  EXPECT_EQ(density_in(s, 0), 0.5);
  s.ramp_steps = 0;
  s.density = 0.01;
  EXPECT_EQ(density_in(s, 0), 0.01);
}

TEST(SyncSettings, MomentumIsANumberBelowOne) {
  const auto momentum = [&](const char* value) {
    return with(
        {{"RIFFLE_SYNC", "ds_sync"}, {"RIFFLE_OPTIMIZER", "sgd"}, {"RIFFLE_MOMENTUM", value}});
  };
  EXPECT_EQ(momentum("0.9").momentum, 0.9);
  EXPECT_EQ(momentum("0.9").note, "");
  for (const char* bad : {"1", "-0.1", "nan", "0.9x", "much"}) {
    const SyncSettings s = momentum(bad);
    EXPECT_EQ(s.momentum, 0) << bad;
    EXPECT_EQ(s.mode, SyncMode::kDsSync);
    EXPECT_NE(s.note.find(std::string("RIFFLE_MOMENTUM=") + bad), std::string::npos) << s.note;
    EXPECT_NE(s.note.find("below 1"), std::string::npos) << s.note;
  }
}

TEST(SyncSettings, ShadowRulesAndTheirNumbers) {
  const auto shadow = [&](std::vector<std::pair<const char*, const char*>> knobs) {
    knobs.insert(knobs.end(), {{"RIFFLE_SYNC", "shadow_sync"}, {"RIFFLE_OPTIMIZER", "sgd"}});
    return with(knobs);
  };
  EXPECT_EQ(shadow({}).shadow.variant, ShadowVariant::kDelta);
  const SyncSettings bmuf =
      shadow({{"RIFFLE_SHADOW_RULE", "bmuf"}, {"RIFFLE_SHADOW_PULL", "0.25"}});
  EXPECT_EQ(bmuf.mode, SyncMode::kShadowSync);
  EXPECT_EQ(describe(bmuf.shadow, 4), "bmuf (pull 0.25, block momentum 0.75, block rate 1)");
  const SyncSettings easgd =
      shadow({{"RIFFLE_SHADOW_RULE", "easgd"}, {"RIFFLE_EASGD_FOLLOW", "1"}});
  EXPECT_EQ(describe(easgd.shadow, 4), "easgd (pull 0.5, follow 1)");
  const SyncSettings plain = shadow({{"RIFFLE_SHADOW_RULE", "bmuf"},
                                     {"RIFFLE_BLOCK_MOMENTUM", "0"},
                                     {"RIFFLE_BLOCK_RATE", "1.5"}});
  EXPECT_EQ(describe(plain.shadow, 4), "bmuf (pull 0.5, block momentum 0, block rate 1.5)");
}

TEST(SyncSettings, NumbersOfTheShadowRuleThatCannotBeAreRefused) {
  struct Wrong {
    const char *rule, *name, *value, *accepted;
  };
  for (const Wrong& w : {Wrong{"interpolation", "RIFFLE_SHADOW_PULL", "1", "above 0 and below 1"},
                         Wrong{"bmuf", "RIFFLE_SHADOW_PULL", "0", "above 0 and below 1"},
                         Wrong{"easgd", "RIFFLE_SHADOW_PULL", "half", "above 0 and below 1"},
                         Wrong{"easgd", "RIFFLE_EASGD_FOLLOW", "1.1", "above 0 and up to 1"},
                         Wrong{"easgd", "RIFFLE_EASGD_FOLLOW", "0.9x", "above 0 and up to 1"},
                         Wrong{"bmuf", "RIFFLE_BLOCK_MOMENTUM", "1", "from 0 to below 1"},
                         Wrong{"bmuf", "RIFFLE_BLOCK_MOMENTUM", "nan", "from 0 to below 1"},
                         Wrong{"bmuf", "RIFFLE_BLOCK_RATE", "0", "above 0 and up to 2"}}) {
    std::vector<std::pair<const char*, const char*>> knobs = {{"RIFFLE_SYNC", "shadow_sync"},
                                                              {"RIFFLE_OPTIMIZER", "sgd"},
                                                              {"RIFFLE_SHADOW_RULE", w.rule},
                                                              {w.name, w.value}};
    const SyncSettings refused = with(knobs);
    EXPECT_EQ(refused.mode, SyncMode::kExact) << w.name << w.value;
    EXPECT_NE(refused.refusal.find(std::string(w.name) + "=" + w.value + ": accepted are"),
              std::string::npos)
        << refused.refusal;
    EXPECT_NE(refused.refusal.find(w.accepted), std::string::npos) << refused.refusal;
    knobs[2].second = "delta";  // which has no use for it
    EXPECT_EQ(with(knobs).mode, SyncMode::kShadowSync) << w.name;
  }
  // An unknown rule is the table's affair: it says so, and the default holds.
  EXPECT_EQ(with({{"RIFFLE_SYNC", "shadow_sync"},
                  {"RIFFLE_OPTIMIZER", "sgd"},
                  {"RIFFLE_SHADOW_RULE", "median"}})
                .shadow.variant,
            ShadowVariant::kDelta);
}

TEST(SyncSettings, NarrowSums) {
  const SyncSettings bf16 = with({{"RIFFLE_WIRE", "bf16"}});
  EXPECT_EQ(bf16.mode, SyncMode::kNarrow);
  EXPECT_EQ(bf16.wire, WireFormat::kBfloat16);
  EXPECT_EQ(bf16.refusal + bf16.note, "") << "every optimizer bears them";
  EXPECT_EQ(with({{"RIFFLE_WIRE", "fp8block"}}).wire, WireFormat::kFloat8Block);
  const SyncSettings both =
      with({{"RIFFLE_WIRE", "bf16"}, {"RIFFLE_SYNC", "ds_sync"}, {"RIFFLE_OPTIMIZER", "sgd"}});
  EXPECT_EQ(both.mode, SyncMode::kExact);
  EXPECT_NE(both.refusal.find("RIFFLE_WIRE=bf16 and RIFFLE_SYNC=ds_sync"), std::string::npos);
  const SyncSettings sparse = with({{"RIFFLE_WIRE", "bf16"}, {"RIFFLE_SPARSE", "0.01"}});
  EXPECT_EQ(sparse.mode, SyncMode::kSparse);
  EXPECT_NE(sparse.note.find("RIFFLE_WIRE has no effect"), std::string::npos) << sparse.note;
  const SyncSettings never = with({{"RIFFLE_WIRE", "bf16"}, {"RIFFLE_EPOCH", "0"}});
  EXPECT_EQ(never.mode, SyncMode::kExact);
  EXPECT_NE(never.refusal.find("RIFFLE_WIRE=bf16 begins when"), std::string::npos);
}

}  // namespace
}  // namespace riffle::sync_settings_test
