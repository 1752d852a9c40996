// The stand-in, given the job of a recorded run of real NCCL, makes the same calls: per coll object
// the same sequence of iallreduce (count, type, operator, offsets) and registrations, and over NET
// connections the same sequences of sizes and tags.
#include <algorithm>

#include "test/nccl_host/plugin_under_test.h"
#include "test/nccl_host/trace_job.h"

namespace riffle::host::trace_reproduce_test {
namespace {

struct Scenario {
  std::string release;
  std::string name;
  friend void PrintTo(const Scenario& s, std::ostream* out) { *out << s.release << " " << s.name; }
};

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> out;
  for (const char* release : {"2.28.9", "2.30.7"}) {
    for (const std::string& s : scenarios(std::string(RIFFLE_TRACES) + "/nccl-" + release)) {
      out.push_back({release, s});
    }
  }
  return out;
}

std::string text_of(const CollNetCall& c) {
  return std::to_string(c.count) + " elements of type " + std::to_string(c.type) + ", op " +
         std::to_string(c.op) + ", at " + std::to_string(c.send_offset) + " -> " +
         std::to_string(c.recv_offset);
}

constexpr std::size_t kFailingCall = 9;  // of k-error-test

Status same_all_reduces(const Recording& ours, const Recording& theirs, bool up_to_error) {
  if (ours.all_reduces.size() != theirs.all_reduces.size()) {
    return internal_error(std::to_string(ours.all_reduces.size()) + " coll objects instead of " +
                          std::to_string(theirs.all_reduces.size()));
  }
  for (const auto& [object, wanted] : theirs.all_reduces) {
    const auto& got = ours.all_reduces.at(object);
    const auto [a, b] = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
    if (a == got.end() && b == wanted.end()) continue;
    // How many calls were under way when one failed is a matter of time.
    if (up_to_error && a == got.end() && got.size() > kFailingCall) continue;
    return internal_error("coll object " + std::to_string(object) + ", call " +
                          std::to_string(a - got.begin()) + " of " + std::to_string(wanted.size()) +
                          ": " + (a == got.end() ? "missing" : text_of(*a)) + " instead of " +
                          (b == wanted.end() ? "nothing" : text_of(*b)));
  }
  if (ours.registrations != theirs.registrations ||
      ours.deregistrations != theirs.deregistrations) {
    return internal_error("other numbers of regMr or deregMr on coll objects");
  }
  return ours.close_after_deregister ? Status::ok() : internal_error("closeColl before deregMr");
}

// Connections are numbered differently here and there; their sequences must be the same as a set.
std::vector<Messages> sequences(const std::map<int, Messages>& by_connection) {
  std::vector<Messages> out;
  for (const auto& [connection, messages] : by_connection) {
    if (!messages.empty()) out.push_back(messages);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status same_messages(const char* what, const std::map<int, Messages>& ours,
                     const std::map<int, Messages>& theirs) {
  const auto got = sequences(ours), wanted = sequences(theirs);
  if (got == wanted) return Status::ok();
  std::string text = std::string("NET ") + what + " differ:";
  for (const auto* side : {&got, &wanted}) {
    text += side == &got ? "\n  stand-in " : "\n  NCCL     ";
    for (const Messages& m : *side) {
      text += "[" + std::to_string(m.size()) + " messages:";
      for (std::size_t i = 0; i < std::min<std::size_t>(m.size(), 12); ++i) {
        text += " " + std::to_string(m[i].second) + "/" + std::to_string(m[i].first);
      }
      text += "] ";
    }
  }
  return internal_error(text);
}

class TraceReproduce : public ::testing::TestWithParam<Scenario> {};

TEST_P(TraceReproduce, MakesTheSameCalls) {
  const Scenario& scenario = GetParam();
  if (const std::string reason = not_reproduced_because(scenario.name); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const std::string folder = std::string(RIFFLE_TRACES) + "/nccl-" + scenario.release;
  std::vector<Trace> traces;
  for (int rank : {0, 1}) {
    Result<Trace> t = read_trace(folder, scenario.name, rank);
    ASSERT_TRUE(t.is_ok()) << t.status().message();
    traces.push_back(std::move(*t));
  }
  LaunchOptions options;
  options.ranks = traces[0].header["nranks"];
  options.deadline_ms = 60000;
  const Status status = all_succeeded(launch(options, [&](Bootstrap& bootstrap) -> Status {
    const auto rank = static_cast<std::size_t>(bootstrap.rank());
    Result<Recording> ours = run_job(traces[rank % 2], bootstrap);
    if (!ours) return ours.status();
    if (rank > 1) return Status::ok();  // not recorded
    const Recording theirs = recorded(traces[rank]);
    if (Status s = same_all_reduces(*ours, theirs, scenario.name == "k-error-test"); !s) return s;
    if (Status s = same_messages("sends", ours->sends, theirs.sends); !s) return s;
    return same_messages("receives", ours->receives, theirs.receives);
  }));
  EXPECT_TRUE(status.is_ok()) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, TraceReproduce, ::testing::ValuesIn(all_scenarios()),
                         [](const auto& info) {
                           std::string name = info.param.release + "_" + info.param.name;
                           for (char& c : name) {
                             if (c == '.' || c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace riffle::host::trace_reproduce_test
