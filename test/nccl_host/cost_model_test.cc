// The stand-in's cost model against the tables that real NCCL handed to a tuner.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/nccl_host/work/cost_model.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host::cost_model_test {
namespace {

TEST(CostModel, GivesNcclsTables) {
  int compared = 0;
  for (const char* release : {"2.28.9", "2.30.7"}) {
    const std::string folder = std::string(RIFFLE_TRACES) + "/nccl-" + release;
    for (const std::string& scenario : scenarios(folder)) {
      Result<Trace> trace = read_trace(folder, scenario, 0);
      ASSERT_TRUE(trace.is_ok()) << trace.status().message();
      // Nodes with several ranks and halves of a split have other hops; channels enter the ring.
      const Json& h = trace->header;
      if (h["ranksPerNode"] != 1 || h["job"].contains("split")) continue;
      CostModel model;
      model.ranks = h["nranks"];
      model.channels = std::stoi(h["env"].value("NCCL_MAX_NCHANNELS", "2"));
      model.collnet = true;
      for (const Json& c : trace->calls) {
        if (c["call"] != "getCollInfo" || c["numPipeOps"] != 1) continue;
        float table[kAlgorithms][kProtocols];
        predict(model, static_cast<Function>(c["coll"].get<int>()), c["nBytes"], table);
        for (const Json& e : c["table"]) {
          const double ours = table[e[0].get<int>()][e[1].get<int>()], theirs = e[2];
          EXPECT_NEAR(ours, theirs, 0.01 + theirs * 1e-3) << release << " " << scenario << " " << c;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

TEST(CostModel, CheapestSkipsWhatIsNotThere) {
  float table[kAlgorithms][kProtocols];
  predict({.ranks = 4, .collnet = false}, Function::kAllReduce, 8, table);
  EXPECT_EQ(cheapest(table), Algorithm::kTree);
  predict({.ranks = 4, .collnet = false}, Function::kAllReduce, 64 << 20, table);
  EXPECT_EQ(cheapest(table), Algorithm::kRing);
  predict({.ranks = 4, .collnet = true}, Function::kAllReduce, 64 << 20, table);
  EXPECT_EQ(cheapest(table), Algorithm::kCollNetChain);
  table[1][2] = 0;
  EXPECT_EQ(cheapest(table), Algorithm::kRing);
}

}  // namespace
}  // namespace riffle::host::cost_model_test
