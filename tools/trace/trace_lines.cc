#include "tools/trace/trace_lines.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/record_files.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools::trace {
namespace {

using nlohmann::json;

// Below, sums of a few of them stay within 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 61;

// What is wrong in a line: a field, what it is and what is accepted.
struct Wrong {
  std::string what;
};

std::int64_t whole(const json& value, const std::string& name, std::int64_t least,
                   std::int64_t most) {
  const bool is_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost);
  if (value.is_number_integer() && !is_large) {
    const auto number = value.get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  // (To print anything else would need as much stack as it is deep.)
  const std::string found = value.is_number() ? value.dump() : value.type_name();
  throw Wrong{name + " is " + found + ", accepted are " + std::to_string(least) + " to " +
              std::to_string(most)};
}

const json& field(const json& line, const char* name) {
  const auto at = line.find(name);
  if (at == line.end()) throw Wrong{std::string(name) + " is missing"};
  return *at;
}

std::int64_t whole_field(const json& line, const char* name, std::int64_t least,
                         std::int64_t most) {
  return whole(field(line, name), name, least, most);
}

std::string text_field(const json& line, const char* name) {
  const json& value = field(line, name);
  if (!value.is_string()) throw Wrong{std::string(name) + " is not text"};
  return value.get<std::string>();
}

Span span_of(const json& from, std::int64_t base_ns) {
  constexpr std::size_t kFields = 11;
  if (!from.is_array() || from.size() != kFields) {
    throw Wrong{"a span is not a list of " + std::to_string(kFields) + " numbers"};
  }
  Span span;
  span.kind = static_cast<SpanKind>(whole(from[0], "a span's kind", 0, kSpanKinds - 1));
  span.term = static_cast<std::uint32_t>(whole(from[1], "its term", 0, UINT32_MAX));
  span.number = static_cast<std::uint64_t>(whole(from[2], "its number", 0, kMost));
  span.level = static_cast<std::uint8_t>(whole(from[3], "its level", 0, UINT8_MAX));
  span.group = static_cast<std::uint32_t>(whole(from[4], "its group", 0, UINT32_MAX));
  span.lane = static_cast<std::uint16_t>(whole(from[5], "its lane", 0, UINT16_MAX));
  span.peer = static_cast<std::int32_t>(whole(from[6], "its peer", -1, kMaxNodes - 1));
  span.offset = static_cast<std::uint64_t>(whole(from[7], "its offset", 0, kMost));
  span.bytes = static_cast<std::uint64_t>(whole(from[8], "its length", 0, kMost));
  const std::int64_t begin_ns = base_ns + whole(from[9], "its begin", -base_ns, kMost);
  span.begin_ns = static_cast<std::uint64_t>(begin_ns);
  span.end_ns = static_cast<std::uint64_t>(begin_ns + whole(from[10], "its duration", 0, kMost));
  return span;
}

Status wrong(const std::string& what) { return invalid_argument(what); }

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

struct TraceLines::Line {
  const std::string& file;
  const json& fields;
  std::string comm;
  int rank = 0;
};

Status TraceLines::add(const std::string& file, const std::string& text) {
  const json fields = json::parse(text, nullptr, false);
  if (!fields.is_object()) return wrong("it is no JSON object");
  try {
    const std::string type = text_field(fields, "type");
    if (type == "process") {
      processes_[file] =
          text_field(fields, "host") + " " + std::to_string(whole_field(fields, "pid", 0, kMost));
      return Status::ok();
    }
    if (type == "dropped") return Status::ok();  // lines of events; spans are counted elsewhere
    const Line line{file, fields, text_field(fields, "comm"),
                    static_cast<int>(whole_field(fields, "rank", 0, kMaxNodes - 1))};
    if (type == "trace") return take_trace(line);
    if (type == "spans") return take_spans(line);
    if (type == "event") return take_event(line);
    return wrong("its type is " + type.substr(0, 40) +
                 ", accepted are process, trace, spans, event and dropped");
  } catch (const Wrong& e) {
    return wrong(e.what);
  }
}

Result<TraceLines::Node*> TraceLines::node_of(const Line& line) {
  const std::string& process = processes_[line.file];
  Node& node = comms_[line.comm].nodes[line.rank];
  if (!node.trace.is_there) node.process = process;
  node.trace.is_there = true;
  if (node.process != process) {
    return wrong("rank " + std::to_string(line.rank) + " of communicator " + line.comm +
                 " is that of process " + process + " here and of process " + node.process +
                 " elsewhere: traces of several jobs are mixed");
  }
  return &node;
}

Status TraceLines::take_trace(const Line& line) {
  const auto size = static_cast<std::size_t>(whole_field(line.fields, "size", 2, kMaxNodes));
  const json& hosts = field(line.fields, "hosts");
  if (!hosts.is_array() || hosts.size() > size) {
    return wrong("hosts are no list of at most " + std::to_string(size));
  }
  const Result<Node*> node = node_of(line);
  if (!node) return node.status();
  JobTrace& job = comms_[line.comm].job;
  if (!job.nodes.empty() && job.nodes.size() != size) {
    return wrong("communicator " + line.comm + " has " + std::to_string(size) + " nodes here and " +
                 std::to_string(job.nodes.size()) + " elsewhere: traces of several jobs are mixed");
  }
  job.comm = line.comm;
  job.nodes.resize(size);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].is_string()) job.nodes[i].host = hosts[i].get<std::string>();
  }
  const auto every = static_cast<std::uint64_t>(whole_field(line.fields, "every", 1, kMost));
  job.every = std::max(job.every, every);
  job.room_spans = static_cast<std::uint64_t>(whole_field(line.fields, "room_spans", 0, kMost));
  (*node)->trace.time_of_day_offset_ns =
      whole_field(line.fields, "time_of_day_offset_ns", -kMost, kMost);
  return Status::ok();
}

Status TraceLines::take_spans(const Line& line) {
  const std::int64_t base_ns = whole_field(line.fields, "at_ns", 0, kMost);
  const auto dropped = static_cast<std::uint64_t>(whole_field(line.fields, "dropped", 0, kMost));
  const json& spans = field(line.fields, "spans");
  if (!spans.is_array()) return wrong("spans are no list");
  const Result<Node*> node = node_of(line);
  if (!node) return node.status();
  NodeTrace& trace = (*node)->trace;
  for (const json& span : spans) trace.spans.push_back(span_of(span, base_ns));
  trace.dropped = std::max(trace.dropped, dropped);
  comms_[line.comm].spans += spans.size();
  return Status::ok();
}

Status TraceLines::take_event(const Line& line) {
  const TraceEvent event{whole_field(line.fields, "at_ns", 0, kMost),
                         text_field(line.fields, "kind"), text_field(line.fields, "name"),
                         text_field(line.fields, "why")};
  const Result<Node*> node = node_of(line);
  if (!node) return node.status();
  (*node)->trace.events.push_back(event);
  return Status::ok();
}

std::set<std::string> TraceLines::processes_of(const Comm& comm) const {
  std::set<std::string> processes;
  for (const auto& [rank, node] : comm.nodes) processes.insert(node.process);
  return processes;
}

Result<TraceLines::Comm*> TraceLines::choose(const std::string& name) {
  std::vector<std::string> names, foreign;
  Comm* most = nullptr;
  for (auto& [key, comm] : comms_) {
    if (comm.job.nodes.empty()) continue;  // it never connected, or its first lines are missing
    if (key == name) return &comm;
    names.push_back(key);
    if (most == nullptr || comm.spans > most->spans) most = &comm;
  }
  if (!name.empty()) {
    return wrong("there is no communicator " + name + "; there are: " + list_of(names));
  }
  if (most == nullptr) return wrong("no communicator connected while traces were written");
  const std::set<std::string> own = processes_of(*most);
  for (const auto& [key, comm] : comms_) {
    const std::set<std::string> others = processes_of(comm);
    const bool is_own = std::any_of(others.begin(), others.end(),
                                    [&](const std::string& p) { return own.contains(p); });
    if (!is_own && !comm.job.nodes.empty()) foreign.push_back(key);
  }
  if (foreign.empty()) return most;
  return wrong("traces of several jobs are mixed: no process of communicator " + most->job.comm +
               " is in " + list_of(foreign) + "; choose one with --comm");
}

Result<JobTrace> TraceLines::take(const std::string& name) {
  const Result<Comm*> chosen = choose(name);
  if (!chosen) return chosen.status();
  Comm& comm = **chosen;
  JobTrace job = std::move(comm.job);
  for (auto& [rank, node] : comm.nodes) {
    if (rank >= job.size()) {
      return wrong("communicator " + job.comm + " has " + std::to_string(job.size()) +
                   " nodes, and one of them says it is number " + std::to_string(rank));
    }
    for (const Span& span : node.trace.spans) {
      if (span.peer < job.size()) continue;
      return wrong("node " + std::to_string(rank) + " of " + std::to_string(job.size()) +
                   " has a span with node " + std::to_string(span.peer));
    }
    NodeTrace& to = job.nodes[static_cast<std::size_t>(rank)];
    const std::string host = std::exchange(to.host, {});
    to = std::move(node.trace);
    to.host = host;
  }
  for (int rank = 0; rank < job.size(); ++rank) {
    const NodeTrace& node = job.nodes[static_cast<std::size_t>(rank)];
    if (!node.is_there) job.notes.push_back("there is no trace of node " + std::to_string(rank));
  }
  const std::size_t others = comms_.size() - 1;
  if (others > 0 && name.empty()) {
    job.notes.push_back("communicator " + job.comm + " has most spans; there are " +
                        std::to_string(others) + " others (--comm)");
  }
  return job;
}

Result<JobTrace> read_traces(const std::vector<std::string>& paths, const std::string& comm) {
  const auto files = job_files(paths, ".trace", "trace");
  if (!files) return files.status();
  TraceLines lines;
  std::vector<std::string> notes;
  for (const std::string& file : *files) {
    std::ifstream in(file);
    if (!in) return system_error("trace " + file + " cannot be read");
    std::uint64_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const Status added = lines.add(file, line);
      if (added) continue;
      if (!in.eof()) {
        return invalid_argument("trace " + file + ", line " + std::to_string(number) + ": " +
                                added.message());
      }
      notes.push_back(file + ": the last line is cut off, and left out");
    }
  }
  if (lines.is_empty()) {
    return invalid_argument(list_of(paths) +
                            ": no trace of Riffle; run the job with RIFFLE_TRACE=1 and "
                            "RIFFLE_RECORD=FOLDER/ and give that folder");
  }
  Result<JobTrace> job = lines.take(comm);
  if (!job) return invalid_argument(list_of(paths) + ": " + job.status().message());
  job->notes.insert(job->notes.end(), notes.begin(), notes.end());
  return job;
}

}  // namespace riffle::tools::trace
