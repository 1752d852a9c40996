#include "plugin/config/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "test/kept_log.h"

namespace riffle::config_test {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const KnobInfo& knob : knobs()) unsetenv(knob.name.c_str());
    write_file("");
    setenv("RIFFLE_CONF_FILE", path_.c_str(), 1);
    set_logger(keep_line);
    kept_lines.clear();
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
    unsetenv("RIFFLE_CONF_FILE");
    unlink(path_.c_str());
    reload_config();
    set_logger(nullptr);
  }
  void write_file(const std::string& text) { std::ofstream(path_) << text; }
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  static KnobInfo info(const std::string& name) {
    const auto all = knobs();
    return *std::find_if(all.begin(), all.end(), [&](const auto& k) { return k.name == name; });
  }

  const std::string path_ = ::testing::TempDir() + "riffle_config_" + std::to_string(getpid());
  std::vector<std::string> set_;
};

TEST_F(ConfigTest, DefaultsComeFromTheTable) {
  reload_config();
  EXPECT_EQ(config().streams, 0);
  EXPECT_EQ(config().chunk_bytes, 1 << 20);
  EXPECT_EQ(config().collnet, "auto");
  EXPECT_FALSE(config().deterministic);
  EXPECT_EQ(info("RIFFLE_STREAMS").source, "default");
  EXPECT_TRUE(kept_lines.empty());
}

TEST_F(ConfigTest, EnvironmentWinsOverTheFileAndTheFileOverDefaults) {
  write_file("# a comment\n\n  RIFFLE_STREAMS = 3   # fast NICs\nRIFFLE_LANES=16\r\n");
  set("RIFFLE_STREAMS", "5");
  reload_config();
  EXPECT_EQ(config().streams, 5);
  EXPECT_EQ(config().lanes, 16);
  EXPECT_EQ(info("RIFFLE_STREAMS").source, "environment");
  EXPECT_EQ(info("RIFFLE_LANES").source, path_ + ":4");
  EXPECT_TRUE(kept_lines.empty());
}

TEST_F(ConfigTest, BytesTakeSuffixesOtherIntegersDoNot) {
  set("RIFFLE_CHUNK_BYTES", "2M");
  set("RIFFLE_COLLNET_MIN_BYTES", "1g");
  set("RIFFLE_STREAMS", "1K");
  reload_config();
  EXPECT_EQ(config().chunk_bytes, 2 << 20);
  EXPECT_EQ(config().collnet_min_bytes, 1 << 30);
  EXPECT_EQ(config().streams, 0);
  EXPECT_EQ(info("RIFFLE_CHUNK_BYTES").value, "2M");
  EXPECT_EQ(kept_lines.size(), 1U);
}

TEST_F(ConfigTest, SwitchesTakeTheUsualWords) {
  for (const auto& [word, value] : {std::pair{"1", true},
                                    {"on", true},
                                    {"Yes", true},
                                    {"TRUE", true},
                                    {"0", false},
                                    {"off", false},
                                    {"no", false}}) {
    set("RIFFLE_PAYLOAD_CRC", word);
    reload_config();
    EXPECT_EQ(config().payload_crc, value) << word;
  }
  EXPECT_TRUE(kept_lines.empty());
}

TEST_F(ConfigTest, BadValueWarnsOnceWithNameValueSourceRangeAndKeepsTheDefault) {
  set("RIFFLE_STREAMS", "17");
  reload_config();
  EXPECT_EQ(config().streams, 0);
  EXPECT_EQ(config().streams, 0);
  ASSERT_EQ(kept_lines.size(), 1U);
  EXPECT_EQ(kept_lines[0],
            "Riffle: RIFFLE_STREAMS=17 (environment): accepted is 0..16; the default 0 holds");
}

TEST_F(ConfigTest, BadValueInTheEnvironmentIsNotReplacedByTheFile) {
  set("RIFFLE_COLLNET", "maybe");
  write_file("RIFFLE_COLLNET=off\n");
  reload_config();
  EXPECT_EQ(config().collnet, "auto");
  ASSERT_EQ(kept_lines.size(), 1U);
  EXPECT_NE(kept_lines[0].find("auto|on|off|tcp"), std::string::npos);
}

TEST_F(ConfigTest, EveryKindOfBadTextIsRefused) {
  for (const char* text : {"", "x", "2x", "-1", "1.5", "99999999999999999999", "0x2", "2 3"}) {
    write_file("RIFFLE_STREAMS=" + std::string(text) + "\n");
    kept_lines.clear();
    reload_config();
    EXPECT_EQ(config().streams, 0) << text;
    ASSERT_EQ(kept_lines.size(), 1U) << text;
    EXPECT_NE(kept_lines[0].find(path_ + ":1"), std::string::npos) << kept_lines[0];
  }
}

TEST_F(ConfigTest, SuffixThatOverflowsIsRefused) {
  set("RIFFLE_CHUNK_BYTES", "9223372036854775807G");
  reload_config();
  EXPECT_EQ(config().chunk_bytes, 1 << 20);
  EXPECT_EQ(kept_lines.size(), 1U);
}

TEST_F(ConfigTest, UnknownNamesAreReportedWithTheNearestOne) {
  set("RIFFLE_STREEMS", "4");
  write_file("RIFFLE_LANE=4\nnonsense\n");
  reload_config();
  ASSERT_EQ(kept_lines.size(), 3U);
  const auto said = [](const std::string& part) {
    return std::any_of(kept_lines.begin(), kept_lines.end(),
                       [&](const auto& l) { return l.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(
      said("RIFFLE_STREEMS (environment) is no setting of Riffle; did you mean RIFFLE_STREAMS?"));
  EXPECT_TRUE(
      said("RIFFLE_LANE (" + path_ + ":1) is no setting of Riffle; did you mean RIFFLE_LANES?"));
  EXPECT_TRUE(said("\"nonsense\" is not KEY=VALUE"));
}

TEST_F(ConfigTest, MissingConfFileIsReported) {
  unlink(path_.c_str());
  reload_config();
  ASSERT_EQ(kept_lines.size(), 1U);
  EXPECT_NE(kept_lines[0].find("RIFFLE_CONF_FILE=" + path_ + " cannot be read"), std::string::npos);
}

TEST_F(ConfigTest, LabelsArePrintableAndNotTooLong) {
  set("RIFFLE_RACK", "row 3/rack-12");
  reload_config();
  EXPECT_EQ(config().rack, "row 3/rack-12");
  EXPECT_TRUE(kept_lines.empty());
  for (const std::string& bad :
       {std::string(65, 'a'), std::string("a\tb"), std::string("r\xc3\xa4")}) {
    kept_lines.clear();
    set("RIFFLE_RACK", bad);
    reload_config();
    EXPECT_EQ(config().rack, "") << bad;
    ASSERT_EQ(kept_lines.size(), 1u) << bad;
    EXPECT_NE(kept_lines[0].find("accepted is 1..64 printable characters"), std::string::npos);
  }
}

TEST_F(ConfigTest, EmptyVariableCountsAsUnset) {
  set("RIFFLE_STREAMS", "");
  reload_config();
  EXPECT_EQ(config().streams, 0);
  EXPECT_TRUE(kept_lines.empty());
}

TEST_F(ConfigTest, DecisionKnobsHoldExactlyTheDigestRows) {
  set("RIFFLE_STREAMS", "4");
  reload_config();
  const std::string text = decision_knobs(config());
  EXPECT_NE(text.find("RIFFLE_STREAMS=4\n"), std::string::npos);
  for (const KnobInfo& knob : knobs()) {
    const bool inside = text.find(knob.name + "=" + knob.value + "\n") != std::string::npos;
    EXPECT_EQ(inside, knob.in_digest) << knob.name;
  }
}

TEST_F(ConfigTest, EveryPrintedDefaultIsAcceptedBack) {
  reload_config();
  for (const KnobInfo& knob : knobs()) set(knob.name, knob.default_value);
  reload_config();
  EXPECT_TRUE(kept_lines.empty()) << kept_lines.front();
  for (const KnobInfo& knob : knobs()) EXPECT_EQ(knob.value, knob.default_value);
}

}  // namespace
}  // namespace riffle::config_test
