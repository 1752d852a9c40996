#include "tools/trace/rows.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plugin/telemetry/json_line.h"
#include "tools/numbers.h"
#include "tools/trace/waits.h"

namespace riffle::tools::trace {
namespace {

bool is_frame_in(const Span& span) {
  return span.kind == SpanKind::kPartialIn || span.kind == SpanKind::kFinalIn;
}
bool is_partial(const Span& span) {
  return span.kind == SpanKind::kPartialOut || span.kind == SpanKind::kPartialIn;
}

std::string object_of(JsonLine& line) {
  std::string text = line.take();
  text.pop_back();  // the line feed
  return text;
}

// Where some overlap, in several rows of this name.
void add_rows(const std::string& name, std::vector<Slice> slices, std::vector<Row>* rows) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.begin_ns, b.end_ns) < std::tuple(b.begin_ns, a.end_ns);
  });
  std::vector<Row> own;
  for (Slice& slice : slices) {
    const auto is_free = [&](const Row& row) { return row.slices.back().end_ns <= slice.begin_ns; };
    auto row = std::find_if(own.begin(), own.end(), is_free);
    if (row == own.end()) {
      const std::string number = own.empty() ? "" : " (" + std::to_string(own.size() + 1) + ")";
      row = own.insert(own.end(), {name + number, {}});
    }
    row->slices.push_back(std::move(slice));
  }
  for (Row& row : own) rows->push_back(std::move(row));
}

class NodeRows {
 public:
  NodeRows(const JobTrace& job, int node, std::int64_t ahead_ns)
      : job_(job),
        trace_(job.nodes[static_cast<std::size_t>(node)]),
        node_(node),
        ahead_ns_(ahead_ns) {}

  std::vector<Row> take() {
    add_moments();
    add_calls();
    add_groups();
    add_waits();
    add_sums();
    add_links();
    return std::move(rows_);
  }

 private:
  std::int64_t shifted(std::uint64_t ns) const { return static_cast<std::int64_t>(ns) - ahead_ns_; }
  Slice slice(const Span& span, std::string name, JsonLine& args) const {
    return {shifted(span.begin_ns), shifted(span.end_ns), std::move(name), object_of(args),
            nullptr};
  }

  void add_moments() {
    if (trace_.events.empty()) return;
    Row row{"plan", {}};
    for (const TraceEvent& event : trace_.events) {
      JsonLine args;
      args.add("why", event.why);
      const std::int64_t at_ns = event.at_ns - ahead_ns_;
      const std::string name = event.kind + (event.name.empty() ? "" : ": " + event.name);
      row.slices.push_back({at_ns, at_ns, name, object_of(args), nullptr});
    }
    rows_.push_back(std::move(row));
  }

  void add_calls() {
    std::vector<Slice> calls, chunks;
    for (const Span& span : trace_.spans) {
      JsonLine args;
      args.add("term", std::uint64_t{span.term}).add("bytes", span.bytes);
      const std::string number = " " + std::to_string(span.number);
      if (span.kind == SpanKind::kCall) {
        calls.push_back(slice(span, "all-reduce" + number, args));
      } else if (span.kind == SpanKind::kChunk) {
        args.add("call", span.offset).add("lane", static_cast<int>(span.lane));
        chunks.push_back(slice(span, "chunk" + number, args));
      }
    }
    add_rows("calls", std::move(calls), &rows_);
    add_rows("chunks", std::move(chunks), &rows_);
  }

  void add_groups() {
    using GroupName = std::tuple<std::uint8_t, std::uint32_t, std::uint64_t, std::uint32_t>;
    std::map<GroupName, Span> groups;  // by level, term, chunk, group
    for (const Span& span : trace_.spans) {
      if (span.kind == SpanKind::kCall || span.kind == SpanKind::kChunk) continue;
      const GroupName name{span.level, span.term, span.number, span.group};
      Span& group = groups.try_emplace(name, span).first->second;
      group.begin_ns = std::min(group.begin_ns, span.begin_ns);
      group.end_ns = std::max(group.end_ns, span.end_ns);
    }
    std::map<int, std::vector<Slice>> levels;
    for (const auto& [name, group] : groups) {
      JsonLine args;
      args.add("term", std::uint64_t{group.term}).add("chunk", group.number);
      args.add("group", 1 + std::uint64_t{group.group});
      const std::string text = printed(
          "chunk %llu, group %u", static_cast<unsigned long long>(group.number), group.group + 1);
      levels[group.level].push_back(slice(group, text, args));
    }
    for (auto& [level, slices] : levels) {
      add_rows("level " + std::to_string(level + 1), std::move(slices), &rows_);
    }
  }

  void add_waits() {
    std::vector<Slice> slices;
    for (const Wait& wait : waits_of(trace_.spans, node_)) {
      JsonLine args;
      args.add("peer", wait.peer).add("times", wait.times);
      slices.push_back({shifted(wait.begin_ns), shifted(wait.end_ns),
                        "for " + name_of(job_, wait.peer), object_of(args), nullptr});
    }
    add_rows("waits", std::move(slices), &rows_);
  }

  void add_sums() {
    std::vector<Slice> slices;
    for (const Span& span : trace_.spans) {
      if (span.kind != SpanKind::kSum) continue;
      JsonLine args = place(span);
      args.add("last_from", static_cast<int>(span.peer));
      slices.push_back(slice(span, "sum, chunk " + std::to_string(span.number), args));
    }
    add_rows("sums", std::move(slices), &rows_);
  }

  static JsonLine place(const Span& span) {
    JsonLine args;
    args.add("term", std::uint64_t{span.term}).add("chunk", span.number);
    args.add("level", 1 + static_cast<int>(span.level)).add("group", 1 + std::uint64_t{span.group});
    args.add("offset_bytes", span.offset).add("bytes", span.bytes);
    return args;
  }

  void add_links() {
    std::map<std::pair<int, bool>, std::vector<const Span*>> links;  // by peer; out before in
    for (const Span& span : trace_.spans) {
      const bool is_in = is_frame_in(span);
      const bool is_frame =
          is_in || span.kind == SpanKind::kPartialOut || span.kind == SpanKind::kFinalOut;
      if (is_frame) links[{span.peer, is_in}].push_back(&span);
    }
    for (auto& [link, frames] : links) {
      rows_.push_back(
          link_row((link.second ? "from " : "to ") + name_of(job_, link.first), std::move(frames)));
    }
  }

  // One frame behind the other.
  Row link_row(std::string name, std::vector<const Span*> frames) const {
    std::stable_sort(frames.begin(), frames.end(), [](const Span* a, const Span* b) {
      return std::tuple(a->end_ns, a->begin_ns) < std::tuple(b->end_ns, b->begin_ns);
    });
    Row row{std::move(name), {}};
    std::uint64_t free_ns = 0;
    for (const Span* frame : frames) {
      const std::uint64_t begin_ns = std::max(frame->begin_ns, free_ns);
      JsonLine args = place(*frame);
      args.raw("waited_us", us_number(static_cast<std::int64_t>(begin_ns - frame->begin_ns)));
      const std::string what = is_partial(*frame) ? "partial sum" : "result";
      row.slices.push_back({shifted(begin_ns), shifted(frame->end_ns),
                            what + ", chunk " + std::to_string(frame->number), object_of(args),
                            frame});
      free_ns = frame->end_ns;
    }
    return row;
  }

  const JobTrace& job_;
  const NodeTrace& trace_;
  const int node_;
  const std::int64_t ahead_ns_;
  std::vector<Row> rows_;
};

}  // namespace

std::string us_number(std::int64_t ns) {
  const std::uint64_t size =
      ns < 0 ? -static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return printed("%s%llu.%03llu", ns < 0 ? "-" : "", static_cast<unsigned long long>(size / 1000),
                 static_cast<unsigned long long>(size % 1000));
}

std::string name_of(const JobTrace& job, int node) {
  std::string name = "node " + std::to_string(node);
  if (node < 0 || node >= job.size()) return name;
  const std::string& host = job.nodes[static_cast<std::size_t>(node)].host;
  return host.empty() ? name : name + " (" + host + ")";
}

std::vector<Row> rows_of(const JobTrace& job, int node, std::int64_t ahead_ns) {
  return NodeRows(job, node, ahead_ns).take();
}

}  // namespace riffle::tools::trace
