#include "plugin/identity/layout.h"

#include <algorithm>

namespace riffle {
namespace {

// A sequence that held for this many buckets was one, whatever came after.
constexpr std::uint64_t kLongRun = 64;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31);
}

std::uint64_t shape_of(const Layout::Piece& p) {
  std::uint64_t hash = mix(0, p.comm_id);
  for (std::uint64_t value : {p.first, p.valid, p.total, p.count}) hash = mix(hash, value);
  return mix(mix(hash, static_cast<std::uint64_t>(p.type)), static_cast<std::uint64_t>(p.op));
}

// NCCL's numbers of what gradients are.
constexpr int kHalf = 6, kFloat = 7, kBfloat16 = 9, kSum = 0;

std::size_t bytes_of(int type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kElementBytes.size() ? kElementBytes[index] : 1;
}

bool has_shape(const Layout::Piece& p, const CallShape& call) {
  return p.count == call.count && p.type == call.type && p.op == call.op;
}

bool is_piece(const Layout::Piece& p, const CallIdentity& identity) {
  return p.comm_id == identity.comm_id && p.buffer == identity.buffer &&
         p.first == identity.first_element && p.valid == identity.valid_elements &&
         p.total == identity.total_elements;
}

// Where the smallest of all rotations begins, and how many rotations equal it.
std::size_t smallest_rotation(const std::vector<std::uint64_t>& s, std::size_t* period) {
  const std::size_t n = s.size();
  std::size_t best = 0;
  *period = n;
  for (std::size_t r = 1; r < n; ++r) {
    std::size_t i = 0;
    while (i < n && s[(r + i) % n] == s[(best + i) % n]) ++i;
    if (i == n) *period = std::min(*period, r - best);
    if (i < n && s[(r + i) % n] < s[(best + i) % n]) best = r;
  }
  return best;
}

}  // namespace

Layout::Layout(const LayoutOptions& options) : options_(options) {}

bool Layout::is_outside(const CallShape& call) const {
  if (call.count * bytes_of(call.type) < options_.min_bytes) return true;
  if (!options_.sums_of_floats_only) return false;
  const bool is_float = call.type == kFloat || call.type == kHalf || call.type == kBfloat16;
  return !is_float || call.op != kSum;
}

Layout::Place Layout::look(const CallShape& call, const CallIdentity& identity) const {
  Place place;
  if (is_outside(call)) {
    place.kind = Place::Kind::kOutside;
  } else if (is_known()) {
    const Piece& expected = pieces_[next_];
    place.is_seen_by_all = !has_shape(expected, call);
    if (place.is_seen_by_all || (identity.is_sure && !is_piece(expected, identity))) {
      place.kind = Place::Kind::kDeviates;
    } else {
      place.kind = Place::Kind::kAt;
      place.position = next_;
      place.begins_step = next_ == 0;
    }
  }
  return place;
}

Layout::Place Layout::take(const CallShape& call, const CallIdentity& identity) {
  if (is_outside(call)) return look(call, identity);
  // A bucket ends where the next one begins, and with it the sequence may become known.
  if (!is_known() && is_open_ && identity.is_sure &&
      (identity.comm_id != open_comm_ || identity.bucket != open_number_)) {
    close_bucket();
  }
  const Place place = look(call, identity);
  if (place.kind == Place::Kind::kAt) {
    next_ = next_ + 1 == pieces_.size() ? 0 : next_ + 1;
    ++matched_;
  } else {
    if (place.kind == Place::Kind::kDeviates) {
      ++deviations_;
      forget();
    }
    learn(call, identity);
  }
  ++calls_;
  return place;
}

std::uint64_t Layout::steady_steps() const {
  return is_known() ? learned_from_ / buckets_ + matched_ / pieces_.size() : 0;
}

void Layout::forget() {
  const std::uint64_t run = learned_from_ + matched_ * buckets_ / pieces_.size();
  window_ =
      run >= kLongRun ? 0 : std::max<std::size_t>(window_, 2 * static_cast<std::size_t>(run) + 1);
  pieces_.clear();
  digest_ = 0;
  history_.clear();
  seen_.clear();
  open_.clear();
  is_open_ = false;
}

void Layout::learn(const CallShape& call, const CallIdentity& identity) {
  if (!identity.is_sure) {
    // What lies before and after an unknown call are not neighbours.
    history_.clear();
    seen_.clear();
    open_.clear();
    is_open_ = false;
    return;
  }
  if (!is_open_) {
    if (identity.first_element != 0) return;  // the rest of a bucket whose beginning we do not have
    is_open_ = true;
    open_comm_ = identity.comm_id;
    open_number_ = identity.bucket;
    open_first_call_ = calls_;
  }
  if (open_.size() >= options_.max_calls) {
    is_open_ = false;
    open_.clear();
    history_.clear();
    return;
  }
  open_.push_back({identity.comm_id, 0, identity.buffer, identity.first_element,
                   identity.valid_elements, identity.total_elements, call.count, call.type,
                   call.op});
}

void Layout::close_bucket() {
  std::uint64_t shape = 0;
  for (const Piece& p : open_) shape = mix(shape, shape_of(p));
  const std::uint64_t key = mix(shape, reinterpret_cast<std::uintptr_t>(open_.front().buffer));
  seen_.try_emplace(key, open_);
  const std::size_t most = (options_.repeats + 1) * options_.max_buckets + 2 * kLongRun;
  if (history_.size() >= 2 * most) {
    history_.erase(history_.begin(), history_.end() - static_cast<std::ptrdiff_t>(most));
    // Buckets that come no more are forgotten.
    std::erase_if(seen_, [&](const auto& s) {
      return std::none_of(history_.begin(), history_.end(),
                          [&](const Bucket& b) { return b.key == s.first; }) &&
             s.first != key;
    });
  }
  history_.push_back({key, shape, open_first_call_});
  open_.clear();
  is_open_ = false;
  find_sequence();
}

std::size_t Layout::needed(std::size_t period) const {
  return std::max<std::size_t>(options_.repeats * period, window_);
}

bool Layout::repeats_with(std::size_t period) const {
  const std::size_t n = history_.size(), need = needed(period);
  if (n < need || need < period) return false;
  for (std::size_t i = n; i-- > n - need + period;) {
    if (history_[i].key != history_[i - period].key) return false;
  }
  return true;
}

void Layout::find_sequence() {
  for (std::size_t period = 1; period <= options_.max_buckets; ++period) {
    if (history_.size() < needed(period)) return;
    if (repeats_with(period)) return settle(period);
  }
}

void Layout::settle(std::size_t period) {
  const auto last = history_.end() - static_cast<std::ptrdiff_t>(period);
  std::vector<std::uint64_t> shapes;
  std::size_t calls = 0;
  for (auto b = last; b != history_.end(); ++b) {
    shapes.push_back(b->shape);
    calls += seen_.at(b->key).size();
  }
  if (calls > options_.max_calls) return;
  std::size_t turn;
  std::size_t start = smallest_rotation(shapes, &turn);
  std::uint64_t phase = 0;
  if (turn != period) {
    // Several buckets could be the first; the one that came at the smallest place of a raster that
    // all ranks share is it.
    const auto at = [&](std::size_t i) {
      return last[static_cast<std::ptrdiff_t>(i)].first_call % calls;
    };
    const std::size_t first = start % turn;
    start = first;
    for (std::size_t i = first; i < period; i += turn) {
      if (at(i) < at(start)) start = i;
    }
    phase = at(start) + 1;
  }
  digest_ = mix(mix(0, period), phase);
  for (std::size_t i = 0; i < period; ++i) {
    if (start + i == period)
      next_ = pieces_.size();  // where the next call stands: the oldest bucket
    const Bucket& b = last[static_cast<std::ptrdiff_t>((start + i) % period)];
    digest_ = mix(digest_, b.shape);
    for (Piece p : seen_.at(b.key)) {
      p.bucket = static_cast<std::uint32_t>(i);
      pieces_.push_back(p);
    }
  }
  if (start == 0) next_ = 0;
  if (digest_ == 0) digest_ = 1;
  buckets_ = period;
  learned_from_ = needed(period);
  matched_ = 0;
  history_.clear();
  seen_.clear();
}

}  // namespace riffle
