#include "bench/sparse/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "bench/harness/cpu_load.h"
#include "bench/harness/turns.h"
#include "bench/sparse/gradients.h"
#include "sparse/predict.h"

namespace riffle::bench {
namespace {

double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::ranges::sort(x);
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

struct Timed {
  double time_us = 0, compute_us = 0;
};

Result<Timed> timed_from(const std::vector<std::string>& answers) {
  std::int64_t first = INT64_MAX, last = 0;
  Timed timed;
  for (const std::string& answer : answers) {
    std::istringstream in(answer);
    std::string word;
    std::int64_t start = 0, end = 0;
    double compute_us = 0;
    in >> word >> start >> end >> compute_us;
    if (word != "done" || !in) return internal_error("unexpected answer: " + answer);
    first = std::min(first, start);
    last = std::max(last, end);
    timed.compute_us += compute_us / static_cast<double>(answers.size());
  }
  timed.time_us = static_cast<double>(last - first) / 1e3;
  return timed;
}

Result<std::vector<double>> bytes_sent(const Site& site) {
  std::vector<double> all;
  for (int n = 0; site.cluster && n < site.ranks; ++n) {
    const auto bytes = site.cluster->wire_bytes(n);
    if (!bytes) return bytes.status();
    all.push_back(static_cast<double>(bytes->sent));
  }
  return all;
}

int teams_of(const SparseQuestion& question, const cluster::Profile& profile) {
  return question.teams > 0 ? question.teams : default_teams(profile);
}

sparse::SparsePlan plan_of(const SchemeName& scheme, const SparseQuestion& question,
                           const cluster::Profile& profile) {
  if (scheme.name == "spardl-reuse") {
    const std::uint64_t elements = question.bytes / sizeof(float);
    const std::uint64_t chunk = scheme.chunk_bytes / sizeof(float);
    return sparse::best_plan(fabric_of(profile), question.teams, question.density, elements,
                             chunk > 0 ? chunk : elements, {});
  }
  sparse::SparsePlan plan;
  if (scheme.name != "spardl-teams") return plan;
  plan.teams = teams_of(question, profile);
  if (std::has_single_bit(static_cast<unsigned>(plan.teams))) {
    plan.across = sparse::Across::kRecursive;
  }
  plan.node_at = team_order(profile, plan.teams);
  return plan;
}

// One scheme's samples.
class Series {
 public:
  Series(ControlHub& hub, const Site& site, const SparseQuestion& question, std::string scheme,
         const sparse::SparsePlan& plan)
      : hub_(hub), site_(site), question_(question), scheme_(std::move(scheme)) {
    row_.teams = plan.teams;
    std::ostringstream order;
    order << scheme_ << ' ' << plan.teams << ' ' << (plan.across == sparse::Across::kRecursive)
          << ' ';
    for (const int rank : plan.node_at) order << rank << ',';
    order << '-';
    select_ = order.str();
  }

  Status iterate(int step) {
    const bool counts = step >= question_.warmup;
    const auto ready = ask("select " + std::to_string(step) + " " + select_);
    if (!ready) return ready.status();
    const auto before = bytes_sent(site_);
    if (!before) return before.status();
    const auto full = timed("go", counts ? &load_ : nullptr);
    if (!full) return full.status();
    const auto after = bytes_sent(site_);
    if (!after) return after.status();
    const auto wire = timed("replay", counts ? &wire_load_ : nullptr);
    if (!wire) return wire.status();
    const auto answers = ask("check");
    if (!answers) return answers.status();
    if (Status s = check(answers.value()); !s) return s;
    if (!counts) return Status::ok();
    times_.push_back(full->time_us);
    wire_times_.push_back(wire->time_us);
    compute_.push_back(full->compute_us);
    double most = -1;
    for (std::size_t n = 0; n < after->size(); ++n)
      most = std::max(most, (*after)[n] - (*before)[n]);
    tx_.push_back(most);
    return Status::ok();
  }

  SparseRow row() const {
    SparseRow row = row_;
    row.scheme = scheme_;
    row.ranks = site_.ranks;
    row.bytes = question_.bytes;
    row.iters = question_.iters;
    row.kept = SchemeShape{.workers = site_.ranks,
                           .elements = question_.bytes / sizeof(float),
                           .density = question_.density,
                           .order = {}}
                   .kept();
    row.time_us = median(times_);
    row.samples_us = times_;
    row.wire_us = median(wire_times_);
    row.compute_us = median(compute_);
    row.reselect_us = median(reselect_);
    row.result_entries = median(entries_);
    row.tx_bytes = tx_.empty() ? -1 : median(tx_);
    row.cpu_load = load_.load();
    row.wire_cpu_load = wire_load_.load();
    if (question_.dense_time_us > 0) row.x_dense = question_.dense_time_us / row.time_us;
    return row;
  }

 private:
  Result<std::vector<std::string>> ask(const std::string& order) {
    if (Status s = hub_.tell_all(order); !s) return s;
    return hub_.hear_all(kAnswerMs);
  }
  Result<Timed> timed(const std::string& order, CpuLoad* load) {
    if (load != nullptr) load->start();
    const auto answers = ask(order);
    if (load != nullptr) load->stop();
    if (!answers) return answers.status();
    return timed_from(answers.value());
  }

  Status check(const std::vector<std::string>& answers) {
    double given = 0, undelivered = 0, magnitude = 0, reselect_us = 0, result = 0;
    std::uint64_t digest = 0;
    bool is_same = true;
    row_.sent = {};
    for (std::size_t r = 0; r < answers.size(); ++r) {
      const auto c = checked_from(answers[r]);
      if (!c) return c.status();
      given += c->given;
      undelivered += c->undelivered;
      reselect_us += c->reselect_us / static_cast<double>(answers.size());
      if (r == 0) {
        digest = c->digest;
        result = c->result;
        magnitude = c->magnitude;
        entries_.push_back(static_cast<double>(c->result_entries));
        row_.formula = c->formula;
      }
      is_same &= c->digest == digest;
      row_.sent.messages = std::max(row_.sent.messages, c->sent.messages);
      row_.sent.entries = std::max(row_.sent.entries, c->sent.entries);
      row_.sent.bytes = std::max(row_.sent.bytes, c->sent.bytes);
    }
    reselect_.push_back(reselect_us);
    // Rounding of what was summed is far below one lost entry; that of bfloat16 is not.
    const double tolerance = (scheme_.starts_with("ring-bf16") ? 1e-3 : 1e-7) * magnitude;
    const bool is_kept = std::fabs(given - undelivered - result) <= tolerance;
    if (!is_same || !is_kept) ++row_.wrong;
    return Status::ok();
  }

  ControlHub& hub_;
  const Site& site_;
  const SparseQuestion& question_;
  std::string scheme_, select_;
  CpuLoad load_, wire_load_;
  std::vector<double> times_, wire_times_, compute_, reselect_, entries_, tx_;
  SparseRow row_;
};

Status run(Session& session, const SparseQuestion& question, std::vector<Series>& series,
           const std::function<void(const std::string&)>& progress) {
  ControlHub& hub = session.hub();
  std::ostringstream input;
  input << "input " << question.bytes / sizeof(float) << ' ' << question.density << ' '
        << (question.gradients.empty() ? "-" : question.gradients);
  if (Status s = hub.tell_all(input.str()); !s) return s;
  if (auto ready = hub.hear_all(kAnswerMs); !ready) return ready.status();
  const int steps = question.warmup + question.iters;
  for (int step = 0; step < steps; ++step) {
    for (const std::size_t at : order_of(series.size(), 0, static_cast<std::size_t>(step))) {
      progress("sparse: " + question.schemes[at] + ", " + std::to_string(step + 1) + " of " +
               std::to_string(steps));
      if (Status s = series[at].iterate(step); !s) {
        return {s.code(), question.schemes[at] + ": " + s.message()};
      }
    }
  }
  return Status::ok();
}

}  // namespace

int default_teams(const cluster::Profile& profile) {
  const int racks = static_cast<int>(profile.racks.size()), nodes = profile.size();
  std::vector<int> nodes_of(static_cast<std::size_t>(racks));
  for (const int rack : profile.rack_of) ++nodes_of[static_cast<std::size_t>(rack)];
  if (racks > 1 && std::ranges::adjacent_find(nodes_of, std::not_equal_to()) == nodes_of.end()) {
    return racks;
  }
  for (int teams = 2; teams < nodes; ++teams) {
    if (nodes % teams == 0) return teams;
  }
  return nodes;
}

std::vector<int> team_order(const cluster::Profile& profile, int teams) {
  std::vector<int> order(static_cast<std::size_t>(profile.size()));
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = static_cast<int>(r);
  if (profile.racks.size() > 1 && teams == default_teams(profile)) {
    std::ranges::stable_sort(
        order, {}, [&](int rank) { return profile.rack_of[static_cast<std::size_t>(rank)]; });
  }
  return order;
}

Status validate(const SparseQuestion& question, const cluster::Profile& profile) {
  const SchemeShape shape{.workers = profile.size(),
                          .elements = static_cast<std::uint64_t>(profile.size()),
                          .density = question.density,
                          .teams = teams_of(question, profile),
                          .order = {}};
  for (const std::string& scheme : question.schemes) {
    const auto name = parse_scheme(scheme);
    if (!name) return name.status();
    if (auto made = make_scheme(name->name, shape, 0); !made) return made.status();
  }
  const auto gradients =
      Gradients::open(question.gradients, profile.size(), question.bytes / sizeof(float));
  return gradients ? Status::ok() : gradients.status();
}

Result<std::vector<SparseRow>> compare(Session& session, const SparseQuestion& question,
                                       const std::function<void(const std::string&)>& progress) {
  if (Status s = validate(question, session.profile()); !s) return s;
  const Site& site = session.site();
  progress("sparse: starting " + std::to_string(site.ranks) + " processes");
  if (Status s = session.begin(sparse_peer()); !s) return s;
  std::vector<Series> series;
  for (const std::string& scheme : question.schemes) {
    series.emplace_back(session.hub(), site, question, scheme,
                        plan_of(*parse_scheme(scheme), question, session.profile()));
  }
  const Status status = run(session, question, series, progress);
  const Status explained = status ? status : session.explain(status);
  session.end();
  if (!explained) return explained;
  std::vector<SparseRow> rows;
  for (const Series& one : series) {
    rows.push_back(one.row());
    rows.back().profile = session.profile().name;
  }
  return rows;
}

}  // namespace riffle::bench
