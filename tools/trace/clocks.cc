#include "tools/trace/clocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace riffle::tools::trace {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
// No two clocks differ by more (36 years), whatever a file says: sums stay within 64 bits.
constexpr std::int64_t kFar = std::int64_t{1} << 60;
std::int64_t within_reason(std::int64_t ns) { return std::clamp(ns, -kFar, kFar); }

bool is_out(const Span& span) {
  return span.kind == SpanKind::kPartialOut || span.kind == SpanKind::kFinalOut;
}
bool is_in(const Span& span) {
  return span.kind == SpanKind::kPartialIn || span.kind == SpanKind::kFinalIn;
}

// What makes a frame different from all others between any two nodes.
auto name_of(int from, int to, const Span& span) {
  const bool is_final = span.kind == SpanKind::kFinalOut || span.kind == SpanKind::kFinalIn;
  return std::tuple(from, to, span.term, span.number, span.level, span.group, is_final,
                    span.offset);
}

std::int64_t signed_of(std::uint64_t ns) { return static_cast<std::int64_t>(ns); }

// The clock of `to` is ahead of that of `from` by at most so much.
struct Bound {
  int from, to;
  std::int64_t ns;
};

std::vector<Bound> bounds_of(const std::vector<Delivery>& frames) {
  std::map<std::pair<int, int>, std::int64_t> least;
  for (const Delivery& f : frames) {
    const std::int64_t ns = within_reason(signed_of(f.in->begin_ns) - signed_of(f.out->begin_ns));
    const auto [at, is_new] = least.try_emplace({f.from, f.to}, ns);
    if (!is_new) at->second = std::min(at->second, ns);
  }
  std::vector<Bound> bounds;
  for (const auto& [pair, ns] : least) bounds.push_back({pair.first, pair.second, ns});
  return bounds;
}

// By node, the most that its clock is ahead of that of `root` (or, with `backwards`, that of `root`
// is ahead of its); kUnknown where no way leads. Clocks that drift may make circles that go down
// for ever: after as many passes as there are nodes it ends.
std::vector<std::int64_t> shortest(const std::vector<Bound>& bounds, int nodes, int root,
                                   bool backwards) {
  std::vector<std::int64_t> ns(static_cast<std::size_t>(nodes), kUnknown);
  ns[static_cast<std::size_t>(root)] = 0;
  bool has_changed = true;
  for (int pass = 0; has_changed && pass < nodes; ++pass) {
    has_changed = false;
    for (const Bound& b : bounds) {
      const auto at = static_cast<std::size_t>(backwards ? b.to : b.from);
      const auto next = static_cast<std::size_t>(backwards ? b.from : b.to);
      if (ns[at] == kUnknown) continue;
      const std::int64_t this_way = within_reason(ns[at] + b.ns);
      if (this_way >= ns[next]) continue;
      ns[next] = this_way;
      has_changed = true;
    }
  }
  return ns;
}

// The nodes' own idea of the time of day, where they told one.
std::int64_t by_time_of_day(const NodeTrace& node, const NodeTrace& reference) {
  if (!node.time_of_day_offset_ns || !reference.time_of_day_offset_ns) return 0;
  return within_reason(*reference.time_of_day_offset_ns - *node.time_of_day_offset_ns);
}

}  // namespace

std::vector<Delivery> deliveries(const JobTrace& job) {
  struct Sent {
    decltype(name_of(0, 0, Span())) name;
    const Span* span;
  };
  const auto by_name = [](const Sent& a, const Sent& b) { return a.name < b.name; };
  std::vector<Sent> sent;
  for (int from = 0; from < job.size(); ++from) {
    for (const Span& span : job.nodes[static_cast<std::size_t>(from)].spans) {
      if (is_out(span)) sent.push_back({name_of(from, span.peer, span), &span});
    }
  }
  std::sort(sent.begin(), sent.end(), by_name);
  std::vector<Delivery> found;
  for (int to = 0; to < job.size(); ++to) {
    for (const Span& span : job.nodes[static_cast<std::size_t>(to)].spans) {
      if (!is_in(span)) continue;
      const Sent wanted{name_of(span.peer, to, span), nullptr};
      const auto at = std::lower_bound(sent.begin(), sent.end(), wanted, by_name);
      if (at == sent.end() || at->name != wanted.name) continue;
      found.push_back({span.peer, to, at->span, &span});
    }
  }
  return found;
}

Clocks compare_clocks(const JobTrace& job, const std::vector<Delivery>& frames) {
  Clocks clocks = same_clock(job.size());
  const auto is_there = [](const NodeTrace& node) { return node.is_there; };
  const auto first = std::find_if(job.nodes.begin(), job.nodes.end(), is_there);
  if (first == job.nodes.end()) return clocks;
  clocks.reference = static_cast<int>(first - job.nodes.begin());
  const std::vector<Bound> bounds = bounds_of(frames);
  const auto most = shortest(bounds, job.size(), clocks.reference, false);
  const auto most_behind = shortest(bounds, job.size(), clocks.reference, true);
  for (std::size_t i = 0; i < clocks.nodes.size(); ++i) {
    NodeClock& clock = clocks.nodes[i];
    if (most[i] == kUnknown || most_behind[i] == kUnknown) {
      clock = {by_time_of_day(job.nodes[i], *first), std::nullopt};
    } else {
      const std::int64_t least = -most_behind[i];
      clock = {least + (most[i] - least) / 2, std::max<std::int64_t>(0, (most[i] - least + 1) / 2)};
    }
  }
  for (const Bound& b : bounds) {
    const NodeClock& from = clocks.nodes[static_cast<std::size_t>(b.from)];
    const NodeClock& to = clocks.nodes[static_cast<std::size_t>(b.to)];
    if (!from.uncertainty_ns || !to.uncertainty_ns) continue;
    clocks.contradiction_ns =
        std::max(clocks.contradiction_ns, to.ahead_ns - from.ahead_ns - b.ns - 1);
  }
  return clocks;
}

Clocks same_clock(int nodes) {
  Clocks clocks;
  clocks.nodes.resize(static_cast<std::size_t>(nodes), NodeClock{0, 0});
  return clocks;
}

}  // namespace riffle::tools::trace
