// When a plan that live rates asked for has to give way to the one before.
#include "plugin/collective/adapt/change_proof.h"

#include <gtest/gtest.h>

#include <utility>

namespace riffle::change_proof_test {
namespace {

ChangeProof changed(double took_us, double promised_us) {
  Weighed former;
  former.choice.plans.name = "former";
  former.choice.time_us = took_us;
  ChangeProof proof;
  proof.begin(std::move(former), promised_us);
  return proof;
}

TEST(ChangeProof, NothingWasChanged) {
  ChangeProof proof;
  EXPECT_FALSE(proof.is_refuted(1e9));
  EXPECT_FALSE(proof.is_owed());
}

TEST(ChangeProof, APlanThatTakesFarLongerGoesAtOnce) {
  ChangeProof proof = changed(1000, 800);
  EXPECT_TRUE(proof.is_refuted(1150));
  EXPECT_EQ(proof.former().choice.plans.name, "former");
  EXPECT_EQ(proof.former().choice.time_us, 1000);
}

TEST(ChangeProof, ALittleLongerCountsOnlyTwiceInARow) {
  ChangeProof twice = changed(1000, 800);
  EXPECT_FALSE(twice.is_refuted(1050));
  EXPECT_TRUE(twice.is_refuted(1050));

  ChangeProof not_in_a_row = changed(1000, 800);
  EXPECT_FALSE(not_in_a_row.is_refuted(1050));
  EXPECT_FALSE(not_in_a_row.is_refuted(1000));
  EXPECT_FALSE(not_in_a_row.is_refuted(5000)) << "it has been proved; now the network changed";
}

TEST(ChangeProof, IntervalsThatSayNothingDoNotCount) {
  ChangeProof proof = changed(1000, 800);
  EXPECT_FALSE(proof.is_refuted(0));
  EXPECT_FALSE(proof.is_refuted(1050));
  EXPECT_FALSE(proof.is_refuted(0));
  EXPECT_TRUE(proof.is_refuted(1050));
}

TEST(ChangeProof, APlanBeforeOfWhichNothingIsKnownNeverComesBack) {
  ChangeProof proof = changed(0, 800);
  EXPECT_FALSE(proof.is_refuted(5000));
  EXPECT_FALSE(proof.is_refuted(5000));
}

TEST(ChangeProof, OfTwoChangesAtOnceTheFirstPlanComesBack) {
  ChangeProof proof = changed(1000, 800);
  Weighed between;
  between.choice.plans.name = "between";  // was never measured
  proof.begin(between, 900);
  EXPECT_TRUE(proof.is_refuted(1150));
  EXPECT_EQ(proof.former().choice.plans.name, "former");

  between.choice.time_us = 950;
  ChangeProof measured = changed(1000, 800);
  measured.begin(between, 900);
  EXPECT_TRUE(measured.is_refuted(1150));
  EXPECT_EQ(measured.former().choice.plans.name, "between");
}

TEST(ChangeProof, ItsPromiseIsOwedUntilItWasKeptOnce) {
  ChangeProof proof = changed(1000, 800);
  EXPECT_TRUE(proof.is_owed());
  EXPECT_FALSE(proof.is_refuted(980));
  EXPECT_TRUE(proof.is_owed());
  EXPECT_FALSE(proof.is_refuted(850));
  EXPECT_FALSE(proof.is_owed());
  EXPECT_FALSE(proof.is_refuted(980));
  EXPECT_FALSE(proof.is_owed()) << "the network changed";

  ChangeProof ended = changed(1000, 800);
  ended.end();
  EXPECT_FALSE(ended.is_owed());
  EXPECT_FALSE(ended.is_refuted(5000));
}

}  // namespace
}  // namespace riffle::change_proof_test
