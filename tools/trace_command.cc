// `riffle trace`: what nodes wrote with RIFFLE_TRACE, on one clock, as a picture for Perfetto.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/terminal/patience.h"
#include "tools/trace/chrome.h"
#include "tools/trace/trace_lines.h"

namespace riffle::tools {
namespace {

struct TraceArguments {
  std::vector<std::string> paths;
  std::string comm, output;
  bool has_arrows = false;
};

std::string us_text_of(std::int64_t ns) { return us_text(static_cast<double>(ns) / 1e3); }

// To standard error, as standard output may be the picture.
void summarize(const trace::JobTrace& job, const trace::Clocks& clocks, std::size_t frames) {
  std::uint64_t calls = 0, dropped = 0;
  std::int64_t uncertainty_ns = 0;
  int apart = 0;
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const trace::NodeTrace& node = job.nodes[i];
    if (!node.is_there) continue;
    std::uint64_t own = 0;
    for (const Span& span : node.spans) own += span.kind == SpanKind::kCall;
    calls = std::max(calls, own);
    dropped += node.dropped;
    apart += !clocks.nodes[i].uncertainty_ns;
    uncertainty_ns = std::max(uncertainty_ns, clocks.nodes[i].uncertainty_ns.value_or(0));
  }
  std::fprintf(stderr, "%d nodes, communicator %s; %s, %s, clocks within %s\n", job.size(),
               job.comm.c_str(), counted(calls, "all-reduce").c_str(),
               counted(frames, "frame").c_str(), us_text_of(uncertainty_ns).c_str());
  const auto note = [](const std::string& what) {
    std::fprintf(stderr, "note: %s\n", what.c_str());
  };
  for (const std::string& what : job.notes) note(what);
  if (dropped > 0) note(counted(dropped, "span") + " found no room and are missing");
  if (apart > 0) {
    note(counted(static_cast<std::size_t>(apart), "clock") +
         " compared by time of day: no frames lead there and back");
  }
  if (clocks.contradiction_ns > 0) {
    note("clocks do not run equally fast: some frames come " + us_text_of(clocks.contradiction_ns) +
         " before they were sent");
  }
}

int run(const TraceArguments& o) {
  const auto job = patiently("reading traces", [&] { return trace::read_traces(o.paths, o.comm); });
  if (!job) return report(job.status());
  const std::vector<trace::Delivery> frames = trace::deliveries(*job);
  const trace::Clocks clocks = trace::compare_clocks(*job, frames);
  const std::vector<trace::Delivery> arrows =
      o.has_arrows ? frames : std::vector<trace::Delivery>();
  if (o.output.empty()) {
    trace::write_chrome(*job, clocks, arrows, std::cout);
    if (!std::cout.flush()) return report(system_error("cannot write the output"));
  } else {
    std::ofstream file(o.output, std::ios::binary);
    const bool is_written = patiently("writing " + o.output, [&] {
      trace::write_chrome(*job, clocks, arrows, file);
      return static_cast<bool>(file.flush());
    });
    if (!is_written) {
      return report(system_error("cannot write " + o.output + ": " + std::strerror(errno)));
    }
  }
  summarize(*job, clocks, frames.size());
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TraceArguments>();
  CLI::App* sub = app.add_subcommand(
      "trace", "Traced all-reduces as a picture for Perfetto: who sent, added and waited when");
  sub->add_option("trace", o->paths, "Trace files or folders, of as many nodes as there are")
      ->required();
  sub->add_option("-o,--output", o->output, "File to write; standard output without it");
  sub->add_option("--comm", o->comm,
                  "Communicator, as its notes name it; without it the one with most spans");
  sub->add_flag("--arrows", o->has_arrows,
                "Also an arrow for every frame, from where it was sent to where it came");
  sub->footer(
      "A job writes traces when RIFFLE_TRACE and RIFFLE_RECORD are set. The picture is JSON in "
      "Chrome's\n"
      "trace-event format: open it at ui.perfetto.dev or chrome://tracing. Exit code 0: written; "
      "1: "
      "it\n"
      "could not be written; 2: no trace, or one that is damaged or mixed with another job's.\n"
      "Examples: RIFFLE_TRACE=100 RIFFLE_RECORD=/shared/run1/ torchrun ... train.py\n"
      "          riffle trace /shared/run1 -o run1.trace.json");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
