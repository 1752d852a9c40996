// Regroup: what nodes tell each other while they agree who goes on, and what each does on hearing
// it.
#include <algorithm>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/regroup.h"

namespace riffle {
namespace {

void put_nodes(ByteWriter* w, const std::vector<int>& nodes) {
  w->number(nodes.size());
  for (const int node : nodes) w->number(static_cast<std::uint64_t>(node));
}

// Ascending ranks below `size`; anything else counts as mangled.
bool get_nodes(ByteReader* reader, int size, std::vector<int>* nodes) {
  const std::uint64_t count = reader->number();
  if (count > static_cast<std::uint64_t>(size)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t node = reader->number();
    if (node >= static_cast<std::uint64_t>(size)) return false;
    if (!nodes->empty() && static_cast<int>(node) <= nodes->back()) return false;
    nodes->push_back(static_cast<int>(node));
  }
  return reader->is_ok();
}

}  // namespace

void Regroup::tell_state() {
  for (const int peer : reached()) {
    if (peer != rank_) tell_state_to(peer);
  }
}

void Regroup::tell_state_to(int peer) {
  ByteWriter w;
  w.number(round_);
  put_nodes(&w, missing());
  put_nodes(&w, known_to_have_left());
  w.number(expelled_.size());
  for (const auto& [node, why] : expelled_) {
    w.number(static_cast<std::uint64_t>(node));
    w.blob(why);
  }
  w.number(last_.term);
  put_nodes(&w, last_.nodes);
  w.number(steps_.frames_to(peer));
  w.blob(account_);
  steps_.send(peer, kState, w.take());
}

void Regroup::tell_verdict(const Verdict& verdict) {
  ByteWriter w;
  w.number(verdict.next.term);
  put_nodes(&w, verdict.next.nodes);
  w.blob(verdict.content);
  const Bytes message = w.take();
  for (const int node : verdict.next.nodes) {
    if (node != rank_) steps_.send(node, kVerdict, message);
  }
}

void Regroup::tell_round(int peer, std::uint32_t kind) {
  ByteWriter w;
  w.number(round_);
  steps_.send(peer, kind, w.take());
}

void Regroup::tell_excluded(int peer, const std::string& why) {
  ByteWriter w;
  w.blob(why);
  steps_.send(peer, kExcluded, w.take());
}

void Regroup::tell_gone(const std::string& why, bool is_cut_off) {
  ByteWriter w;
  w.blob(why);
  w.number(is_cut_off ? 1 : 0);
  const Bytes message = w.take();
  for (const int peer : reached()) {
    if (peer != rank_) steps_.send(peer, kGone, message);
  }
}

Status Regroup::received(int peer, std::uint32_t kind, const Bytes& message) {
  if (is_over_ || has_lost(peer)) return Status::ok();
  ByteReader reader(message);
  if (hear(peer, kind, &reader)) return Status::ok();
  return remote_error("mangled message " + std::to_string(kind) + " about a loss from node " +
                      std::to_string(peer));
}

bool Regroup::hear(int peer, std::uint32_t kind, ByteReader* reader) {
  if (kind == kExcluded) return hear_excluded(reader);
  if (kind == kGone) return hear_gone(peer, reader);
  const std::uint64_t round = reader->number();
  if (kind == kState) return hear_state(peer, round, reader);
  if (kind == kVerdict) return hear_verdict(peer, round, reader);
  if (!reader->is_complete()) return false;
  if (round != round_ || !verdict_) return true;
  if (kind == kAccepted) {
    accepted_.push_back(peer);
    commit_if_all_accepted();
  } else if (kind == kCommit && phase_ == Phase::kAccepted) {
    commit();
  }
  return true;
}

bool Regroup::hear_excluded(ByteReader* reader) {
  const std::string why = reader->text();
  if (!reader->is_complete()) return false;
  end("excluded: " + why);
  return true;
}

bool Regroup::hear_gone(int peer, ByteReader* reader) {
  const std::string why = reader->text();
  const bool is_cut_off = reader->number() != 0;
  if (!reader->is_complete()) return false;
  ended_on_this_side_[peer] = is_cut_off;
  steps_.dismiss(peer);  // it may live: what is on its way from it must not be written any more
  lost(peer, why);
  return true;
}

bool Regroup::hear_state(int peer, std::uint64_t round, ByteReader* reader) {
  State s;
  if (!get_nodes(reader, size_, &s.missing) || !get_nodes(reader, size_, &s.left)) return false;
  std::map<int, std::string> expelled;
  for (std::uint64_t n = reader->number(); n > 0; --n) {
    const std::uint64_t node = reader->number();
    if (!reader->is_ok() || node >= static_cast<std::uint64_t>(size_)) return false;
    expelled[static_cast<int>(node)] = reader->text();
  }
  s.last.term = reader->number();
  if (!get_nodes(reader, size_, &s.last.nodes)) return false;
  s.frames = reader->number();
  s.account = reader->blob<Bytes>();
  if (!reader->is_complete()) return false;
  if (round < round_ || (round == round_ && phase_ == Phase::kRunning)) return true;
  if (round > round_) {
    for (const auto& [node, why] : expelled) send_away(node, why);
    begin(round);
  }
  if (is_over_) return true;
  const std::vector<int> gone = s.left;
  states_[peer] = std::move(s);
  for (const auto& [node, why] : expelled) {
    if (!is_over_ && send_away(node, why)) retry_without(node);
  }
  for (const int node : gone) {
    if (node != rank_) left(node);
  }
  if (is_over_) return true;
  gather();
  install_if_heard();
  return true;
}

bool Regroup::hear_verdict(int peer, std::uint64_t round, ByteReader* reader) {
  Verdict v;
  v.next.term = round;
  if (!get_nodes(reader, size_, &v.next.nodes)) return false;
  v.content = reader->blob<Bytes>();
  if (!reader->is_complete() || !v.next.has(rank_)) return false;
  if (round != round_ || phase_ != Phase::kGathering || present().front() != peer) return true;
  const bool reaches_all = std::all_of(v.next.nodes.begin(), v.next.nodes.end(), [this](int node) {
    return node == rank_ || !has_lost(node);
  });
  // Else a loss of ours has crossed it.
  if (reaches_all) {
    take(std::move(v));
  } else {
    begin(round_ + 1);
  }
  return true;
}

}  // namespace riffle
