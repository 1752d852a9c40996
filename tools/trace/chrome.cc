#include "tools/trace/chrome.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "plugin/telemetry/json_line.h"
#include "plugin/version.h"
#include "tools/trace/rows.h"

namespace riffle::tools::trace {
namespace {

class ChromeWriter {
 public:
  ChromeWriter(const JobTrace& job, const Clocks& clocks, const std::vector<Delivery>& frames,
               std::ostream& to)
      : job_(job), clocks_(clocks), to_(to), begin_ns_(begin_ns()) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      arrows_[frames[i].out] = arrows_[frames[i].in] = i;
    }
  }

  void write() {
    std::string about = about_text();
    about.pop_back();  // the line feed
    to_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":" << about << ",\"traceEvents\":[\n";
    for (int node = 0; node < job_.size(); ++node) {
      if (job_.nodes[static_cast<std::size_t>(node)].is_there) write_node(node);
    }
    to_ << "\n]}\n";
  }

 private:
  // The first of all, on the reference's clock.
  std::int64_t begin_ns() const {
    std::optional<std::int64_t> first;
    for (std::size_t i = 0; i < job_.nodes.size(); ++i) {
      const auto add = [&](std::int64_t ns) {
        ns -= clocks_.nodes[i].ahead_ns;
        first = first ? std::min(*first, ns) : ns;
      };
      for (const Span& span : job_.nodes[i].spans) add(static_cast<std::int64_t>(span.begin_ns));
      for (const TraceEvent& event : job_.nodes[i].events) add(event.at_ns);
    }
    return first.value_or(0);
  }

  std::string about_text() const {
    std::uint64_t dropped = 0;
    for (const NodeTrace& node : job_.nodes) dropped += node.dropped;
    JsonLine line;
    line.add("schema", "riffle-trace-1").add("riffle", kVersion).add("communicator", job_.comm);
    line.add("nodes", job_.size()).add("every", job_.every);
    line.add("room_spans", job_.room_spans).add("dropped_spans", dropped);
    line.add("reference", clocks_.reference);
    line.raw("contradiction_us", us_number(clocks_.contradiction_ns)).open("clocks", '[');
    for (const NodeClock& clock : clocks_.nodes) {
      line.open("", '{').raw("ahead_us", us_number(clock.ahead_ns));
      line.raw("uncertainty_us",
               clock.uncertainty_ns ? us_number(*clock.uncertainty_ns) : std::string("null"));
      line.close('}');
    }
    line.close(']').open("notes", '[');
    for (const std::string& note : job_.notes) line.add("", note);
    line.close(']');
    return line.take();
  }

  void write_node(int node) {
    const int pid = node + 1;  // number 0 is the idle process
    meta(pid, 0, "process_name", name_of(job_, node));
    sort_index(pid, 0, "process_sort_index", node);
    const std::int64_t ahead_ns = clocks_.nodes[static_cast<std::size_t>(node)].ahead_ns;
    int tid = 0;
    for (const Row& row : rows_of(job_, node, ahead_ns)) {
      ++tid;
      meta(pid, tid, "thread_name", row.name);
      sort_index(pid, tid, "thread_sort_index", tid);
      const bool has_moments = row.name == "plan";
      for (const Slice& slice : row.slices) {
        write_slice(pid, tid, slice, has_moments);
        if (slice.span != nullptr) write_arrow(pid, tid, slice);
      }
    }
  }

  static JsonLine event(int pid, int tid, std::string_view phase, std::string_view name) {
    JsonLine line;
    line.add("ph", phase).add("pid", pid).add("tid", tid).add("name", name);
    return line;
  }
  std::string time_of(std::int64_t ns) const { return us_number(ns - begin_ns_); }

  void write_slice(int pid, int tid, const Slice& slice, bool is_moment) {
    JsonLine line = event(pid, tid, is_moment ? "i" : "X", slice.name);
    line.raw("ts", time_of(slice.begin_ns));
    if (is_moment) {
      line.add("s", "p");  // drawn over the whole process
    } else {
      line.raw("dur", us_number(slice.end_ns - slice.begin_ns));
    }
    put(line.raw("args", slice.args));
  }

  void write_arrow(int pid, int tid, const Slice& slice) {
    const auto arrow = arrows_.find(slice.span);
    if (arrow == arrows_.end()) return;
    const bool begins =
        slice.span->kind == SpanKind::kPartialOut || slice.span->kind == SpanKind::kFinalOut;
    JsonLine line = event(pid, tid, begins ? "s" : "f", "frame");
    line.add("cat", "frame").add("id", std::uint64_t{arrow->second});
    // Within the slice that it belongs to.
    const std::int64_t last_ns = std::max(slice.begin_ns, slice.end_ns - 1);
    line.raw("ts", time_of(begins ? slice.begin_ns : last_ns));
    if (!begins) line.add("bp", "e");
    put(line);
  }

  void meta(int pid, int tid, std::string_view what, std::string_view name) {
    JsonLine line = event(pid, tid, "M", what);
    put(line.open("args", '{').add("name", name).close('}'));
  }
  void sort_index(int pid, int tid, std::string_view what, int index) {
    JsonLine line = event(pid, tid, "M", what);
    put(line.open("args", '{').add("sort_index", index).close('}'));
  }

  void put(JsonLine& line) {
    std::string text = line.take();
    text.pop_back();  // the line feed
    if (has_event_) to_ << ",\n";
    has_event_ = true;
    to_ << text;
  }

  const JobTrace& job_;
  const Clocks& clocks_;
  std::ostream& to_;
  const std::int64_t begin_ns_;
  std::unordered_map<const Span*, std::size_t> arrows_;  // of frames; ids
  bool has_event_ = false;
};

}  // namespace

void write_chrome(const JobTrace& job, const Clocks& clocks, const std::vector<Delivery>& frames,
                  std::ostream& to) {
  ChromeWriter(job, clocks, frames, to).write();
}

}  // namespace riffle::tools::trace
