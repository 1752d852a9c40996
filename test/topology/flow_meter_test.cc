#include "topology/probe/flow_meter.h"

#include <gtest/gtest.h>

namespace riffle::probe::flow_meter_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(FlowMeter, TheStartDoesNotCount) {
  FlowMeter meter(40 * kMs);
  meter.arrived(1000 * kMs, 500'000);  // a burst from a full token bucket
  for (int i = 1; i <= 400; ++i) meter.arrived(1000 * kMs + i * kMs / 10, 5'000);  // 400 Mbit/s
  const Sample s = meter.sample();
  EXPECT_NEAR(static_cast<double>(s.kbps), 400'000, 8'000);
  EXPECT_TRUE(s.is_steady);
}

TEST(FlowMeter, WhatComesAfterTheLimitDoesNotCount) {
  FlowMeter meter(40 * kMs);
  for (int i = 0; i <= 400; ++i) meter.arrived(i * kMs / 10, 1'250);
  for (int i = 401; i <= 800; ++i) meter.arrived(i * kMs / 10, 50'000);
  EXPECT_NEAR(static_cast<double>(meter.sample().kbps), 100'000, 3'000);
  EXPECT_EQ(meter.bytes(), 401u * 1'250 + 400u * 50'000);  // but it has been sent
}

TEST(FlowMeter, AFlowThatChangesIsNotSteady) {
  FlowMeter meter(40 * kMs);
  for (int i = 0; i <= 400; ++i) meter.arrived(i * kMs / 10, i < 270 ? 5'000 : 1'000);
  EXPECT_FALSE(meter.sample().is_steady);
}

TEST(FlowMeter, ShortFlowsOfFastNetworksCount) {
  FlowMeter meter(40 * kMs);  // 2 ms at 100 Gbit/s
  for (int i = 0; i <= 200; ++i) meter.arrived(i * kMs / 100, 125'000);
  EXPECT_NEAR(static_cast<double>(meter.sample().kbps), 1e8, 8e6);
}

// Two frames one after the other, then a loss and nothing more in time: not 1.3 Gbit/s.
TEST(FlowMeter, AFlowThatStoppedHasTheRateOfTheWholeTime) {
  FlowMeter meter(40 * kMs);
  for (int i = 0; i < 4; ++i) meter.arrived(i * kMs / 10, 16'384);
  EXPECT_NEAR(static_cast<double>(meter.sample().kbps), 13'107, 100);
  EXPECT_FALSE(meter.sample().is_steady);
}

// A frame of 16 KiB every 2 ms from the begin of the round on, but for the gap.
Sample of_flow(std::uint64_t gap_from_ms, std::uint64_t gap_to_ms) {
  FlowMeter meter(40 * kMs);
  meter.begins(1000 * kMs);
  for (std::uint64_t ms = 1; ms <= 50; ms += 2) {
    if (ms < gap_from_ms || ms >= gap_to_ms) meter.arrived((1000 + ms) * kMs, 16'384);
  }
  return meter.sample();
}

TEST(FlowMeter, FlowsThatTakeTurnsCarryTogetherWhatTheLinkDoes) {
  const double full = 16'384 * 8 / 2.0;  // kbit/s
  EXPECT_NEAR(static_cast<double>(of_flow(50, 50).together_kbps), full, 0.02 * full);
  const Sample first = of_flow(26, 50), second = of_flow(0, 26);  // each runs alone
  EXPECT_GT(static_cast<double>(first.kbps), 0.9 * full);
  EXPECT_GT(static_cast<double>(second.kbps), 0.9 * full);
  EXPECT_NEAR(static_cast<double>(first.together_kbps + second.together_kbps), full, 0.06 * full);
}

TEST(FlowMeter, AFlowThatMightSendNoMoreHasItsOwnRate) {
  FlowMeter meter(40 * kMs);
  for (int i = 0; i <= 200; ++i) meter.arrived(i * kMs / 100, 125'000);
  EXPECT_EQ(meter.sample().together_kbps, 0);
  EXPECT_EQ(meter.sample(true).together_kbps, meter.sample().kbps);
}

TEST(FlowMeter, TooLittleIsNoRate) {
  FlowMeter none(40 * kMs);
  EXPECT_EQ(none.sample().kbps, 0);
  FlowMeter one(40 * kMs);
  one.arrived(5, 16'384);
  EXPECT_EQ(one.sample().kbps, 0);
}

TEST(FlowWindow, GrowsWhileTheQueueIsShortAndIsBounded) {
  FlowWindow window;
  EXPECT_TRUE(window.may_send(0));
  const std::uint64_t first = window.bytes();
  window.acknowledged(16'384, FlowWindow::kQueueNs);
  EXPECT_EQ(window.bytes(), first);
  for (int i = 0; i < 10'000; ++i) window.acknowledged(16'384, kMs);
  EXPECT_EQ(window.bytes(), FlowWindow::kMostBytes);
  EXPECT_FALSE(window.may_send(FlowWindow::kMostBytes));
}

TEST(FlowWindow, ShrinksWhereQueuesAreLongButNeverToNothing) {
  FlowWindow window;
  window.acknowledged(16'384, 3 * FlowWindow::kQueueNs);
  EXPECT_LT(window.bytes(), FlowWindow::kFirstBytes);
  for (int i = 0; i < 1'000; ++i) window.acknowledged(16'384, 3 * FlowWindow::kQueueNs);
  EXPECT_EQ(window.bytes(), FlowWindow::kLeastBytes);
  EXPECT_TRUE(window.may_send(0));
}

}  // namespace
}  // namespace riffle::probe::flow_meter_test
