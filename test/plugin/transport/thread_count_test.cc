#include "plugin/transport/device/thread_count.h"

#include <gtest/gtest.h>

namespace riffle {
namespace {

Device of_speed(int mbps, bool is_known = true) {
  Device device;
  device.speed_mbps = mbps;
  device.knows_speed = is_known;
  return device;
}

TEST(ThreadCount, OneUpTo10GbitAndOneMoreForEvery20) {
  constexpr std::size_t kMany = 128;
  EXPECT_EQ(threads_for({}, kMany), 1);
  EXPECT_EQ(threads_for({of_speed(1'000)}, kMany), 1);
  EXPECT_EQ(threads_for({of_speed(10'000)}, kMany), 1);
  EXPECT_EQ(threads_for({of_speed(25'000)}, kMany), 2);
  EXPECT_EQ(threads_for({of_speed(50'000)}, kMany), 3);
  EXPECT_EQ(threads_for({of_speed(10'000), of_speed(100'000)}, kMany), 6);
  EXPECT_EQ(threads_for({of_speed(800'000)}, kMany), kMostThreads);
}

TEST(ThreadCount, AsTheJobHasProcessors) {
  EXPECT_EQ(threads_for({of_speed(100'000)}, 0), 1);
  EXPECT_EQ(threads_for({of_speed(100'000)}, 3), 1);
  EXPECT_EQ(threads_for({of_speed(100'000)}, 4), 2);
  EXPECT_EQ(threads_for({of_speed(100'000)}, 16), 6);
}

TEST(ThreadCount, WhatVirtualNicsReportDoesNotCount) {
  EXPECT_EQ(threads_for({of_speed(100'000, false), of_speed(10'000)}, 64), 1);
}

}  // namespace
}  // namespace riffle
