// What survivors tell each other: there and back, mangled, and what follows from it.
#include "plugin/collective/elastic/recovery_messages.h"

#include <gtest/gtest.h>

#include "topology/probe/live_rates.h"

namespace riffle::recovery_messages_test {
namespace {

template <class Decode>
void refuses_every_cut(const std::vector<std::uint8_t>& bytes, Decode decode) {
  EXPECT_TRUE(decode(bytes));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode(
        std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n))))
        << n;
  }
  std::vector<std::uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(decode(longer));
}

TEST(RecoveryMessages, ThereAndBack) {
  const WorkAccount account{
      .done = 12, .begun = 17, .unrepeatable = {13, 15}, .mode = {.begin = 40, .end = 90}};
  const auto bytes = encode(account);
  EXPECT_EQ(decode_account(bytes)->done, 12U);
  EXPECT_EQ(decode_account(bytes)->begun, 17U);
  EXPECT_EQ(decode_account(bytes)->unrepeatable, account.unrepeatable);
  EXPECT_EQ(decode_account(bytes)->mode, account.mode);
  refuses_every_cut(bytes, decode_account);
  const RecoveryOrder order{.problem = "p",
                            .final_below = 7,
                            .begun_below = 8,
                            .mode = {.begin = 3},
                            .plans = {1, 2},
                            .digest = 9};
  EXPECT_EQ(decode_order(encode(order))->final_below, 7U);
  EXPECT_EQ(decode_order(encode(order))->begun_below, 8U);
  EXPECT_EQ(decode_order(encode(order))->mode, order.mode);
  EXPECT_EQ(decode_order(encode(order))->plans, order.plans);
  refuses_every_cut(encode(order), decode_order);
}

PlanBasis two_racks() {
  PlanBasis basis;
  basis.is_nominal = false;
  basis.message_ns = 6789;
  basis.small_message_ns = 12345;
  basis.fabric = even_fabric(6, 1000);
  basis.fabric.racks = {{"a", 100, 200}, {"b", 300, 400}, {"c", 500, 600}};
  for (int n = 0; n < 6; ++n) {
    basis.fabric.nodes[n].rack = n / 2;
    basis.fabric.nodes[n].out_kbps = 10 + n;
  }
  return basis;
}

TEST(RecoveryMessages, TheFabric) {
  const auto bytes = encode(two_racks());
  const auto basis = decode_basis(bytes, 6);
  ASSERT_TRUE(basis) << basis.status().message();
  EXPECT_FALSE(basis->is_nominal);
  EXPECT_EQ(basis->message_ns, 6789);
  EXPECT_EQ(basis->small_message_ns, 12345);
  EXPECT_EQ(basis->fabric.nodes[5].out_kbps, 15);
  EXPECT_EQ(basis->fabric.nodes[5].rack, 2);
  EXPECT_EQ(basis->fabric.racks[2].down_kbps, 600);
  EXPECT_FALSE(decode_basis(bytes, 7));
  refuses_every_cut(bytes, [](const auto& b) { return decode_basis(b, 6); });
}

TEST(RecoveryMessages, RacksWithoutNodesAreLeftOut) {
  PlanBasis all = two_racks();
  all.fabric.rack_latency_us = all.fabric.latency_us / 2;
  const PlanBasis left = restrict_to(all, {0, 4, 5});
  EXPECT_EQ(left.fabric.rack_latency_us, all.fabric.rack_latency_us);
  EXPECT_EQ(left.message_ns, 6789);
  EXPECT_EQ(left.small_message_ns, 12345);
  ASSERT_TRUE(validate(left.fabric));
  ASSERT_EQ(left.fabric.racks.size(), 2U);
  EXPECT_EQ(left.fabric.racks[1].up_kbps, 500);
  EXPECT_EQ(left.fabric.nodes[1].rack, 1);
  EXPECT_EQ(left.fabric.nodes[1].out_kbps, 14);
}

TEST(RecoveryMessages, WhoIsLeftKeepsItsNumberInMessages) {
  const auto basis = decode_basis(encode(two_racks()), 6);
  ASSERT_TRUE(basis);
  const Fabric before = restrict_to(*basis, {0, 4, 5}).fabric;
  Fabric after = before;
  after.nodes[2].out_kbps = after.nodes[2].in_kbps = before.nodes[2].out_kbps * 1000;
  EXPECT_EQ(probe::describe_change(before, after).substr(0, 11), "node 5 now ");
  after = before;
  after.racks[1].up_kbps *= 1000;
  EXPECT_EQ(probe::describe_change(before, after).substr(0, 11), "rack 2 now ");
}

TEST(RecoveryMessages, WhatAllHaveIsOver) {
  EXPECT_EQ(order_of({{.done = 5}, {.done = 3}, {.done = 9}}).final_below, 3U);
  EXPECT_EQ(order_of({{.done = 5}, {.done = 3}}).problem, "");
  // Over already, so nobody has to repeat it.
  EXPECT_EQ(order_of({{.done = 5, .unrepeatable = {2}}, {.done = 3}}).problem, "");
  EXPECT_NE(order_of({{.done = 5, .unrepeatable = {3}}, {.done = 3}}).problem.find("call 3"),
            std::string::npos);
  EXPECT_EQ(order_of({{.begun = 5}, {.begun = 9}, {.begun = 7}}).begun_below, 9U);
}

TEST(RecoveryMessages, TheModeThatBeganLast) {
  EXPECT_EQ(order_of({{}, {}}).mode, ModeSpan{});
  EXPECT_EQ(order_of({{}, {.mode = {.begin = 0}}, {}}).mode, ModeSpan{.begin = 0});
  EXPECT_EQ(order_of({{.mode = {.begin = 40}}, {.mode = {.begin = 40, .end = 70}}}).mode,
            (ModeSpan{.begin = 40, .end = 70}));
  // One node has not heard of its end, and two not of the next mode's beginning.
  EXPECT_EQ(
      order_of(
          {{.mode = {.begin = 40}}, {.mode = {.begin = 90}}, {.mode = {.begin = 40, .end = 70}}})
          .mode,
      ModeSpan{.begin = 90});
}

}  // namespace
}  // namespace riffle::recovery_messages_test
