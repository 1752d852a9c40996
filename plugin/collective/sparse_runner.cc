#include "plugin/collective/sparse_runner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "plugin/collective/float_environment.h"
#include "topology/base/check.h"
#include "topology/base/printed.h"

namespace riffle {
namespace {

constexpr std::uint16_t kDoubtFlag = 1;
constexpr unsigned kRoundShift = 8;
constexpr int kRounds = 2;

int step_of(const FrameHeader& h) { return h.credit_class & ((1 << kRoundShift) - 1); }
int round_of(const FrameHeader& h) { return h.credit_class >> kRoundShift; }
std::uint64_t bytes_of(const FrameHeader& h) { return h.total & 0xffffffffu; }

// 2 ceil(log2 T) + ceil(log2 d) with T d = P is at most this.
std::size_t most_steps(int nodes) {
  return 2 * static_cast<std::size_t>(sparse::ceil_log2(nodes)) + 2;
}

// Whatever the teams: at most P/2 versions of the whole segment, dense.
std::uint64_t most_bytes(int nodes, std::uint64_t elements) {
  const auto n = static_cast<std::uint64_t>(nodes);
  return sparse::kMessageHeaderBytes + n * sparse::kBlockHeaderBytes +
         std::max<std::uint64_t>(1, n / 2) * 4 * (elements + n);
}

// (Whoever hears of it knows whose message it was.)
Status refuse(const FrameHeader& h, const std::string& why) {
  return remote_error("sparse message (segment " + std::to_string(h.seq) + ", round " +
                      std::to_string(round_of(h)) + ", step " + std::to_string(step_of(h)) + ", " +
                      std::to_string(bytes_of(h)) + " bytes) refused: " + why);
}

// Adds the time from its making to its end.
class Timer {
 public:
  Timer(const Mesh* mesh, std::atomic<std::uint64_t>* total)
      : mesh_(mesh), total_(total), began_(total == nullptr ? 0 : mesh->now_ns()) {}
  ~Timer() {
    if (total_ != nullptr) total_->fetch_add(mesh_->now_ns() - began_, std::memory_order_relaxed);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  const Mesh* mesh_;
  std::atomic<std::uint64_t>* total_;
  std::uint64_t began_;
};

void count(std::atomic<std::uint64_t>& total, std::uint64_t n) {
  total.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace

std::string describe(const SparseWork& work) {
  const std::uint64_t segments = work.segments;
  if (segments == 0) return "";
  const auto each = [&](std::uint64_t total) {
    return static_cast<double>(total) / static_cast<double>(segments);
  };
  const std::uint64_t busy_ns = work.select_ns + work.memory_ns;
  const std::uint64_t rest_ns = work.span_ns > busy_ns ? work.span_ns - busy_ns : 0;
  return printed(
      "%llu segments of %.0f elements, each with %.1f messages, %.0f entries and %.0f "
      "bytes sent; time per segment: %.3f ms adding, selecting and summing, %.3f ms "
      "writing the result, %.3f ms network and waiting; %llu done again densely",
      static_cast<unsigned long long>(segments), each(work.elements), each(work.messages),
      each(work.entries), each(work.bytes), each(work.select_ns) / 1e6, each(work.memory_ns) / 1e6,
      each(rest_ns) / 1e6, static_cast<unsigned long long>(work.redone));
}

void SparseRunner::Heard::add(const Heard& other) {
  is_in_doubt = is_in_doubt || other.is_in_doubt;
  least_digest = std::min(least_digest, other.least_digest);
  largest_digest = std::max(largest_digest, other.largest_digest);
}

SparseRunner::SparseRunner(Mesh* mesh, const Options& options, Violation violation)
    : mesh_(mesh),
      options_(options),
      violation_(std::move(violation)),
      most_steps_(most_steps(mesh->size())),
      most_bytes_(most_bytes(mesh->size(), options.most_elements)),
      slots_(kSlots) {
  for (int i = 0; i < mesh->size(); ++i) all_.node_at.push_back(i);
  all_.own = mesh->rank();
  for (Slot& slot : slots_) {
    slot.inboxes.resize(std::size_t{kRounds} * most_steps_);
    slot.outboxes.resize(slot.inboxes.size());
  }
}

SparseRunner::~SparseRunner() = default;

// ----------------------------------------------------------------------------------- segments

void SparseRunner::submit(SparseSegment* segment, Operation* operation) {
  if (failed_) {
    operation->state.store(Operation::State::kFailed, std::memory_order_release);
    return;
  }
  RIFFLE_CHECK(segment->whole <= options_.most_elements, "a segment longer than agreed");
  queue_.push_back({segment, operation});
  ++submitted_;
  if (options_.counters != nullptr) {
    operation->began_ns = now();
    options_.counters->began(operation->began_ns);
  }
  start_segments();
}

void SparseRunner::start_segments() {
  if (is_starting_) return;  // called by a segment that was over at once: this node is alone
  is_starting_ = true;
  const DefaultFloatEnvironment environment;
  while (!queue_.empty() && started_ < oldest_ + kWindow && !failed_) {
    Slot& slot = slot_of(started_);
    if (slot.phase == Phase::kFree) open(slot, started_);
    slot.segment = queue_.front().segment;
    slot.operation = queue_.front().operation;
    queue_.pop_front();
    if (started_ == oldest_) active_since_ns_ = now();
    ++started_;
    start(slot);
  }
  is_starting_ = false;
}

void SparseRunner::open(Slot& slot, std::uint64_t seq) {
  slot.seq = seq;
  slot.phase = Phase::kWaiting;
}

void SparseRunner::start(Slot& slot) {
  SparseSegment& s = *slot.segment;
  slot.phase = Phase::kRunning;
  slot.round = slot.step = 0;
  slot.heard = {!s.is_certain, s.digest, s.digest};
  const bool is_of_all = s.places->node_at.size() == all_.node_at.size();
  slot.places = is_of_all ? s.places : &all_;
  slot.is_dense = s.is_dense || !is_of_all;
  {
    const Timer timer(mesh_, options_.work ? &options_.work->select_ns : nullptr);
    if (slot.is_dense) {
      slot.takes_residual =
          s.is_certain && s.pool->options.residual != sparse::ResidualPolicy::kEf21;
      begin_dense(slot, slot.takes_residual);
    } else {
      RIFFLE_CHECK(!s.pool->free.empty(), "more segments under way than exchanges");
      slot.first = std::move(s.pool->free.back());
      s.pool->free.pop_back();
      if (slot.first->layout().shape().density != s.density) slot.first->set_density(s.density);
      if (s.state_density != s.density) {
        s.state.move_to(slot.first->layout(), s.places->own);
        s.state_density = s.density;
      }
      slot.first->begin(s.state, s.send, s.element, static_cast<std::uint32_t>(slot.seq));
    }
  }
  go_on(slot);
  advance(slot);
}

// What goes into the dense round: what is stale or not finite counts as zero there.
std::vector<float> SparseRunner::dense_input(const Slot& slot, bool takes_residual) const {
  const SparseSegment& s = *slot.segment;
  std::vector<float> input(s.whole);
  for (std::uint64_t i = 0; i < s.whole; ++i) {
    float u = sparse::load(s.send, s.element, i);
    if (takes_residual && i < s.elements) u += s.state.residual[i];
    const bool is_wanted = sparse::is_finite(u) || (slot.round == 0 && i < s.elements);
    input[i] = is_wanted ? u : 0.0F;
  }
  return input;
}

// An exchange in which everybody sends everything.
void SparseRunner::begin_dense(Slot& slot, bool takes_residual) {
  const SparseSegment& s = *slot.segment;
  const int teams = slot.places == &all_ ? 1 : s.teams;
  const sparse::Layout layout({mesh_->size(), teams, s.whole, 1.0});
  sparse::ExchangeOptions options;
  options.across = s.pool->options.across;
  options.isa = s.pool->options.isa;
  slot.second = std::make_unique<sparse::Exchange>(layout, options, slot.places->own);
  slot.scratch = sparse::ChunkState(layout, slot.places->own, options.residual);
  const std::vector<float> input = dense_input(slot, takes_residual);
  slot.second->begin(slot.scratch, input.data(), sparse::Element::kFloat32,
                     static_cast<std::uint32_t>(slot.seq));
}

// With the next step, if there is one.
void SparseRunner::go_on(Slot& slot) {
  if (slot.exchange().is_done()) {
    round_is_over(slot);
  } else {
    send_step(slot);
  }
}

void SparseRunner::send_step(Slot& slot) {
  const std::size_t index = index_of(slot.round, slot.step);
  const auto message = slot.exchange().message();
  std::vector<std::uint8_t>& bytes = slot.outboxes[index];
  bytes.assign(message.begin(), message.end());
  const int peer = slot.places->node_at[static_cast<std::size_t>(slot.exchange().to())];
  FrameHeader header;
  header.type = FrameType::kSparse;
  header.seq = slot.seq;
  header.credit_class = static_cast<std::uint16_t>(slot.round << kRoundShift | slot.step);
  header.flags = slot.heard.is_in_doubt ? kDoubtFlag : 0;
  header.key = slot.heard.least_digest;
  header.total = std::uint64_t{slot.heard.largest_digest} << 32 | bytes.size();
  for (std::uint64_t at = 0; at < bytes.size(); at += kMaxFramePayload) {
    header.offset = at;
    header.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxFramePayload, bytes.size() - at));
    ++slot.parts_under_way;
    mesh_->send(peer, header,
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, header.length},
                kSparseCookie | slot.seq % kSlots, 1 + 2 * slot.seq);
  }
  if (options_.work == nullptr) return;
  count(options_.work->messages, 1);
  count(options_.work->bytes, bytes.size());
}

// Takes what has come for the step at hand, and the next ones.
void SparseRunner::advance(Slot& slot) {
  while (slot.phase == Phase::kRunning && !failed_) {
    Inbox& inbox = slot.inboxes[index_of(slot.round, slot.step)];
    if (!inbox.is_complete() || !take(slot, inbox)) return;
    ++slot.step;
    go_on(slot);
  }
}

bool SparseRunner::take(Slot& slot, Inbox& inbox) {
  const int expected = slot.places->node_at[static_cast<std::size_t>(slot.exchange().from())];
  if (inbox.from != expected) {
    violation_(inbox.from,
               remote_error("sparse message of segment " + std::to_string(slot.seq) + ", step " +
                            std::to_string(slot.step) + " was expected from node " +
                            std::to_string(mesh_->number_of(expected))));
    return false;
  }
  slot.heard.add(inbox.heard);
  if (slot.heard.is_in_doubt || slot.heard.is_mixed_up()) slot.exchange().keep_state();
  const Timer timer(mesh_, options_.work ? &options_.work->select_ns : nullptr);
  const Status status = slot.exchange().receive(inbox.bytes);
  if (!status) {
    violation_(inbox.from, remote_error("sparse message of segment " + std::to_string(slot.seq) +
                                        " refused: " + status.message()));
    return false;
  }
  inbox.bytes.clear();
  return true;
}

void SparseRunner::round_is_over(Slot& slot) {
  SparseSegment& s = *slot.segment;
  const bool is_redone = slot.round > 0;
  if (options_.work != nullptr) count(options_.work->entries, slot.exchange().traffic().entries);
  const bool is_finite = !slot.exchange().has_non_finite();
  if (!is_redone) {
    s.outcome = slot.is_dense ? SparseSegment::Outcome::kDense : SparseSegment::Outcome::kSparse;
    if (slot.heard.is_in_doubt) s.outcome = SparseSegment::Outcome::kInDoubt;
    if (slot.heard.is_mixed_up()) s.outcome = SparseSegment::Outcome::kMixedUp;
    if (!is_finite) s.outcome = SparseSegment::Outcome::kNotFinite;
    const bool is_good =
        s.outcome == SparseSegment::Outcome::kSparse || s.outcome == SparseSegment::Outcome::kDense;
    if (!is_good) {
      if (options_.work != nullptr) count(options_.work->redone, 1);
      if (slot.second) std::swap(slot.first, slot.second);  // it was dense: see finish()
      slot.takes_residual = s.outcome == SparseSegment::Outcome::kInDoubt && s.is_certain &&
                            s.pool->options.residual != sparse::ResidualPolicy::kEf21;
      slot.round = 1;
      slot.step = 0;
      begin_dense(slot, slot.takes_residual);
      return go_on(slot);
    }
  }
  if (slot.second && slot.takes_residual && is_finite) {
    std::copy_n(slot.scratch.residual.begin(), s.elements, s.state.residual.begin());
    s.holds_residual = false;
  } else if (!slot.second) {
    s.holds_residual = true;
  }
  finish(slot);
}

void SparseRunner::finish(Slot& slot) {
  SparseSegment& s = *slot.segment;
  {
    const Timer timer(mesh_, options_.work ? &options_.work->memory_ns : nullptr);
    slot.exchange().write_result(s.recv, s.element);
    if (slot.round > 0 && s.outcome == SparseSegment::Outcome::kNotFinite) {
      for (std::size_t b = 0; b < slot.first->blocks().size(); ++b) {
        const sparse::Entries& entries = slot.first->blocks()[b];
        const std::uint64_t base = slot.first->layout().begin_of(static_cast<int>(b));
        for (std::size_t i = 0; i < entries.count(); ++i) {
          sparse::store(s.recv, s.element, base + entries.indices()[i], entries.values()[i]);
        }
      }
    }
  }
  slot.phase = Phase::kDone;
  if (slot.parts_under_way == 0) close(slot);
}

// The result is there and all frames have left.
void SparseRunner::close(Slot& slot) {
  SparseSegment& s = *slot.segment;
  if (slot.first && !slot.is_dense) s.pool->free.push_back(std::move(slot.first));
  slot.first.reset();
  if (slot.second) {
    slot.second.reset();
    slot.scratch = {};
  }
  slot.segment = nullptr;
  Operation* const operation = slot.operation;
  if (options_.counters != nullptr) {
    options_.counters->ended(now(), operation->began_ns, s.elements * sparse::size_of(s.element));
  }
  if (options_.work != nullptr) {
    count(options_.work->segments, 1);
    count(options_.work->elements, s.elements);
  }
  // From here on the segment is its poster's.
  operation->state.store(Operation::State::kDone, std::memory_order_release);
  retire();
}

// Slots come free in order, so that a number never finds another's.
void SparseRunner::retire() {
  while (oldest_ < started_) {
    Slot& slot = slot_of(oldest_);
    if (slot.phase != Phase::kDone || slot.segment != nullptr) break;
    for (Inbox& inbox : slot.inboxes) {
      inbox.from = -1;
      inbox.heard = {};
    }
    slot.phase = Phase::kFree;
    ++oldest_;
  }
  if (oldest_ == started_ && options_.work != nullptr && active_since_ns_ > 0) {
    count(options_.work->span_ns, now() - std::exchange(active_since_ns_, 0));
  }
  start_segments();
}

// ------------------------------------------------------------------------------------- frames

Result<std::byte*> SparseRunner::place(int peer, const FrameHeader& header) {
  if (failed_) {
    if (discard_.size() < header.length) discard_.resize(kMaxFramePayload);
    return discard_.data();
  }
  if (header.seq < oldest_ || header.seq >= oldest_ + kSlots) {
    return refuse(header, "expected are segments " + std::to_string(oldest_) + " to " +
                              std::to_string(oldest_ + kSlots - 1));
  }
  if (round_of(header) >= kRounds || static_cast<std::size_t>(step_of(header)) >= most_steps_) {
    return refuse(header, "no such step");
  }
  const std::uint64_t total = bytes_of(header);
  if (total == 0 || total > most_bytes_) {
    return refuse(header, "accepted are 1 to " + std::to_string(most_bytes_) + " bytes");
  }
  Slot& slot = slot_of(header.seq);
  if (slot.phase == Phase::kFree) open(slot, header.seq);
  Inbox& in = slot.inboxes[index_of(round_of(header), step_of(header))];
  const Heard heard{(header.flags & kDoubtFlag) != 0, header.key,
                    static_cast<std::uint32_t>(header.total >> 32)};
  if (in.from < 0) {
    in.from = peer;
    in.heard = heard;
    in.bytes.assign(total, 0);
    in.unplaced = in.missing = total;
  }
  if (in.from != peer || in.bytes.size() != total || header.offset > total ||
      header.length > total - header.offset || header.length == 0 || header.length > in.unplaced) {
    return refuse(header, "it came before, or a part does not fit it");
  }
  in.unplaced -= header.length;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + header.offset;
}

void SparseRunner::arrived(int /*peer*/, const FrameHeader& header, std::byte* /*payload*/) {
  if (failed_) return;
  Slot& slot = slot_of(header.seq);
  Inbox& in = slot.inboxes[index_of(round_of(header), step_of(header))];
  in.missing -= std::min<std::uint64_t>(in.missing, header.length);
  if (slot.phase != Phase::kRunning) return;
  const DefaultFloatEnvironment environment;
  advance(slot);
}

void SparseRunner::sent(std::uint64_t cookie) {
  if (failed_) return;
  Slot& slot = slots_[(cookie & ~kSparseCookie) % kSlots];
  RIFFLE_CHECK(slot.parts_under_way > 0, "a frame was sent that nobody queued");
  if (--slot.parts_under_way == 0 && slot.phase == Phase::kDone) close(slot);
}

void SparseRunner::fail() {
  if (failed_) return;
  failed_ = true;
  if (options_.counters != nullptr) options_.counters->all_failed(now());
  for (Slot& slot : slots_) {
    if (SparseSegment* s = std::exchange(slot.segment, nullptr)) {
      queue_.push_back({s, slot.operation});
    }
    slot.phase = Phase::kFree;
  }
  // Inboxes and outboxes stay: the network may still use them.
  for (const Queued& q : std::exchange(queue_, {})) {
    q.operation->state.store(Operation::State::kFailed, std::memory_order_release);
  }
  oldest_ = started_ = submitted_;
}

}  // namespace riffle
