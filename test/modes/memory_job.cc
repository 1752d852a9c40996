#include "test/modes/memory_job.h"

#include <cmath>
#include <limits>

#include "plugin/kernels/convert.h"

namespace riffle::testing {

MemoryJob::MemoryJob(const JobSetup& setup, std::uint64_t seed, std::vector<JobCall> calls)
    : plans_(setup.exact_plans()),
      setup_(setup),
      calls_(std::move(calls)),
      random_(seed),
      network_(setup.nodes, seed) {
  for (int r = 0; r < size(); ++r) {
    nodes_.push_back(std::make_unique<Node>(r, setup_, &plans_, network_.mesh(r), clock_));
    SessionHooks& hooks = node(r).hooks;
    hooks.replan.count = [this] { return node(0).step; };
    hooks.replan.observer = r == 0 ? &watcher_ : nullptr;
    hooks.connected = [this](const Status& s, const std::string&) { connected_ += s.is_ok(); };
    hooks.failed = [this](const std::string& why) { failure = why; };
  }
}

MemoryJob::~MemoryJob() {
  for (auto& n : nodes_) n->job.session->end();
}

void MemoryJob::connect() {
  for (auto& n : nodes_) {
    n->job.make_session(&clock_);
    network_.set_sink(n->job.rank, n->job.session->sink());
  }
  for (auto& n : nodes_) n->job.start(&n->mesh);
  while (connected_ < size() && network_.step()) {
  }
}

std::string MemoryJob::run(int steps) {
  steps_begun_ += static_cast<std::uint64_t>(steps);
  for (int idle = 0; idle < 20000;) {
    bool all_done = true;
    for (int r = 0; r < size(); ++r) {
      if (std::string e = take_results(r); !e.empty()) return e;
      const JobNode& n = node(r);
      if (n.step == steps_begun_ && n.running.empty()) continue;
      all_done = false;
      if (n.step < steps_begun_ && n.running.size() < 4 && random_() % 8 == 0) post(r);
    }
    if (!failure.empty()) return failure;
    if (all_done) return check_all();
    idle = network_.step() ? 0 : idle + 1;
    clock_.advance(200'000);
  }
  return "nothing moves";
}

void MemoryJob::Watcher::on_replan(const ReplanEvent& e) {
  if (e.kind != ReplanEvent::Kind::kMode) return;
  SyncMode mode = sync_mode_of(e.mode);
  for (const SyncMode other : {SyncMode::kSparse, SyncMode::kNarrow}) {  // no values of RIFFLE_SYNC
    if (e.mode == name_of(other)) mode = other;
  }
  changes_->push_back({mode, e.first_seq, e.cause});
}

void MemoryJob::draw(int /*r*/, const JobCall& call, std::mt19937* values,
                     std::vector<float>* data) const {
  std::normal_distribution<float> normal;
  for (float& x : *data) {
    const float n = normal(*values);
    x = n * n * n;
  }
  for (std::uint64_t i = call.valid; i < call.count; i += 3) (*data)[i] = std::nanf("");
}

CallIdentity MemoryJob::identity_of(int r, std::uint64_t step, std::size_t index) const {
  if (!lost.contains({r, step, index})) return testing::identity_of(calls_[index], step);
  CallIdentity id;
  id.why_not = "events were lost";
  return id;
}

std::vector<std::byte> MemoryJob::input_of(int r, std::uint64_t step, std::size_t index) const {
  const JobCall& c = calls_[index];
  std::vector<float> data(c.count);
  std::mt19937 values = values_of(r, step, index);
  draw(r, c, &values, &data);
  if (not_finite.contains({r, step, index})) {
    data[c.valid / 2] = std::numeric_limits<float>::infinity();
  }
  std::vector<std::byte> bytes(c.count * size_of(setup_.type));
  rules::narrow(data.data(), setup_.type, c.count, bytes.data());
  return bytes;
}

std::vector<float> MemoryJob::floats(const std::vector<std::byte>& bytes) const {
  std::vector<float> data(bytes.size() / size_of(setup_.type));
  rules::widen(bytes.data(), setup_.type, data.size(), data.data());
  return data;
}

void MemoryJob::post(int r) {
  JobNode& n = node(r);
  Outcome& outcome =
      outcomes_.try_emplace({n.step, n.index}, static_cast<std::size_t>(size())).first->second;
  if (n.prepare()) {
    outcome.call = calls_[n.index];
    n.next->recv = input_of(r, n.step, n.index);
    outcome.input[r] = floats(n.next->recv);
  }
  const CallIdentity identity = identity_of(r, n.step, n.index);
  const std::uint64_t corrections = counts(r).corrections;
  if (!n.post(identity, calls_.size())) return;
  outcome.brings[r] = counts(r).corrections > corrections;
  outcome.took_part[r] = identity.is_sure;
  outcome.staged += n.running.back()->is_staged;
}

std::string MemoryJob::take_results(int r) {
  JobNode& n = node(r);
  for (auto it = n.running.begin(); it != n.running.end();) {
    PostedCall& call = **it;
    const Result<bool> is_over = n.is_over(&call);
    if (!is_over) return is_over.status().message();
    if (!*is_over) {
      ++it;
      continue;
    }
    Outcome& outcome = outcomes_.at({call.step, call.index});
    outcome.output[r] = floats(call.recv);
    ++outcome.done;
    it = n.running.erase(it);
  }
  return "";
}

std::string MemoryJob::check_all() {
  for (const auto& [key, outcome] : outcomes_) {
    const std::string where =
        " in step " + std::to_string(key.first) + ", call " + std::to_string(key.second);
    if (outcome.done != size()) return "not over everywhere" + where;
    if (outcome.staged != 0 && outcome.staged != size()) return "not all alike" + where;
    if (std::string e = check(key.first, key.second, outcome); !e.empty()) return e + where;
  }
  outcomes_.clear();
  return check_nodes();
}

std::vector<Numbers> MemoryJob::Outcome::valid(const std::vector<std::vector<float>>& all) const {
  std::vector<Numbers> valid;
  for (const std::vector<float>& numbers : all) {
    valid.push_back(Numbers(numbers).first(call.valid));
  }
  return valid;
}

}  // namespace riffle::testing
