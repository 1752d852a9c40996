#include "plugin/transport/nccl_net/library_link.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "plugin/config/log.h"
#include "topology/base/time.h"

namespace riffle::nccl_net {
namespace {

constexpr int kMostLastPolls = 64;  // a library may go on and on

// What a peer says may be anything, and goes into logs.
std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace

LibraryLink::LibraryLink(Owner& owner, const Net& net, void* context, LibraryLinkOptions options)
    : owner_(owner),
      net_(net),
      options_(std::move(options)),
      out_(net, context, options_.device, options_.slots, options_.peer),
      in_(net, context, options_.device, options_.slots, options_.peer) {}

// ---- coming up ----

void LibraryLink::start(std::uint64_t now_ns, std::uint64_t deadline_ns) {
  state_ = State::kOpening;
  deadline_ns_ = deadline_ns;
  moved_ns_ = now_ns;
  std::array<std::byte, kLibraryHandleBytes> handle{};
  if (const Status s = in_.listen(handle); !s) return fail(s, true);
  std::string payload(reinterpret_cast<const char*>(handle.data()), handle.size());
  tell(LibraryFrame::kHandle, 0, payload + net_.name.substr(0, kMostLibraryText));
}

// One step of what is left. The library does not tell when there is one, so it is asked. It must
// not wait in accept, but some do (google/nccl-fastsocket), and nodes that waited for each other so
// would wait for ever.
Status LibraryLink::open_step() {
  if (!out_.is_up() && out_.has_handle()) {
    if (Status s = out_.connect(); !s) return s;
    if (!std::exchange(told_call_, true)) tell(LibraryFrame::kCalls, 0);
  }
  if (!in_.is_up() && heard_call_) {
    if (Status s = in_.accept(); !s) return s;
  }
  if (!out_.is_up() || !in_.is_up()) return Status::ok();
  if (const auto posted = in_.post(); !posted) return posted.status();
  tell_posted();
  return Status::ok();
}

void LibraryLink::open_on(std::uint64_t now_ns) {
  if (const Status s = open_step(); !s) return fail(s, true);
  if (told_posted_ > 0 && granted_ > 0) {
    state_ = State::kUp;
    moved_ns_ = now_ns;
    return owner_.is_up(options_.number);
  }
  if (now_ns < deadline_ns_) return;
  fail(timeout_error(net_.text + ": " + step() + " within RIFFLE_CONNECT_TIMEOUT"), true);
}

std::string LibraryLink::step() const {
  if (!out_.has_handle()) return options_.peer + " did not tell its handle";
  if (!out_.is_up()) return "connect to " + options_.peer + " did not complete";
  if (!heard_call_) return options_.peer + " did not begin to connect";
  if (!in_.is_up()) return "accept from " + options_.peer + " did not complete";
  if (!in_.is_posted()) return "irecv from " + options_.peer + " took no receive";
  return options_.peer + " did not get ready to receive";
}

bool LibraryLink::peer_is_up() {
  if (state_ != State::kOpening) return state_ == State::kUp;
  if (told_posted_ == 0) return false;
  state_ = State::kUp;
  owner_.is_up(options_.number);
  return state_ == State::kUp;
}

// ---- what the peer tells over TCP ----

void LibraryLink::heard(const LibraryFrame& frame, std::string_view payload) {
  if (state_ == State::kOver || state_ == State::kIdle) return;
  switch (frame.kind) {
    case LibraryFrame::kHandle: {
      const std::string_view name = payload.substr(std::min(payload.size(), kLibraryHandleBytes));
      if (payload.size() < kLibraryHandleBytes || out_.has_handle()) break;
      if (name != net_.name.substr(0, kMostLibraryText)) {
        return fail(
            remote_error("its library calls itself '" + printable(name) + "', that of this node '" +
                         net_.name + "': set RIFFLE_NET alike on all nodes"),
            true);
      }
      return out_.set_handle(std::as_bytes(std::span(payload)));
    }
    case LibraryFrame::kCalls:
      heard_call_ = true;
      return;
    case LibraryFrame::kPosted:
      granted_ = std::max(granted_, frame.count);
      out_idle_.has_moved = true;
      return;
    case LibraryFrame::kSent:
      rung_by_peer_ = std::max(rung_by_peer_, frame.count);
      return;
    case LibraryFrame::kEnd:
    case LibraryFrame::kEnded:
      peer_total_ = frame.count;
      rung_by_peer_ = std::max(rung_by_peer_, frame.count);
      (frame.kind == LibraryFrame::kEnd ? heard_end_ : heard_ended_) = true;
      return;
    case LibraryFrame::kFailed:
      return fail(remote_error("it reports: " + printable(payload)), false);
    default:
      break;
  }
  fail(remote_error("it sent a message about its library that makes no sense (kind " +
                    std::to_string(frame.kind) + ", " + std::to_string(payload.size()) + " bytes)"),
       true);
}

void LibraryLink::tell(LibraryFrame::Kind kind, std::uint64_t count, std::string payload) {
  owner_.tell(options_.number, {kind, count}, std::move(payload));
}

// Often enough that the peer does not wait where it need not, and not for every message.
void LibraryLink::tell_posted() {
  const std::uint64_t more = in_.posted() - told_posted_;
  const bool may_starve = told_posted_ == in_.taken();
  if (more == 0 || (more < in_.slots() / 2 && !may_starve)) return;
  told_posted_ = in_.posted();
  tell(LibraryFrame::kPosted, told_posted_);
}

void LibraryLink::ring(std::uint64_t now_ns) {
  if (out_.begun() == rung_ || now_ns - rung_ns_ < kRingNs) return;
  rung_ = out_.begun();
  rung_ns_ = now_ns;
  tell(LibraryFrame::kSent, rung_);
}

// ---- turns and time ----

bool LibraryLink::is_active(std::uint64_t now_ns) const {
  if (is_halted_ || state_ == State::kOver || state_ == State::kIdle) return false;
  if (state_ == State::kOpening || state_ == State::kClosing) return true;
  if (state_ == State::kDeparted) return has_to_send();
  const bool sends = !send_fault_ && (out_.is_under_way() || out_.begun() > rung_ ||
                                      (has_to_send() && (out_.begun() < granted_ || heard_end_)));
  const bool receives = !receive_fault_ && (rung_by_peer_ > in_.taken() || !in_.is_posted());
  if (!fault()) return true;
  const bool ends = heard_end_ && !told_ended_ && knows_all();
  return sends || receives || ends || now_ns - moved_ns_ < kLingerNs;
}

bool LibraryLink::poll(std::uint64_t now_ns) {
  if (is_halted_) return false;
  now_ns_ = now_ns;
  if (state_ == State::kOpening) {
    const State before = state_;
    open_on(now_ns);
    return state_ != before;
  }
  if (state_ == State::kDeparted) return settle_queue(), true;
  if (const Status why = fault(); !why && now_ns - fault_ns_ > kGraceNs) {
    return fail(why, true), true;
  }
  const bool received = receive_on();
  const bool sent = state_ != State::kOver && !is_halted_ && send_on();
  if (state_ == State::kOver || is_halted_) return true;
  const bool moved = received || sent;
  if (moved) moved_ns_ = now_ns;
  in_idle_.has_moved |= received;
  out_idle_.has_moved |= sent;
  ring(now_ns);
  look_at_end();
  note(now_ns);
  return moved;
}

void LibraryLink::note(std::uint64_t now_ns) {
  account_.note(now_ns, out_.is_under_way(), has_to_send() && out_.begun() >= granted_);
}

// A peer that takes and sends nothing while something is due is as good as lost, though it is
// alive. Time in which this process did not run itself does not count (TcpLink).
void LibraryLink::tick(std::uint64_t passed_ns) {
  if (is_halted_) return;
  const bool is_closing = state_ == State::kClosing;
  const bool is_up = state_ == State::kUp;
  const bool sends = out_.is_under_way() || has_to_send();
  out_idle_.tick(is_closing || (is_up && sends), passed_ns);
  in_idle_.tick(is_closing || (is_up && rung_by_peer_ > in_.taken()), passed_ns);
  if (is_closing && std::min(out_idle_.ns, in_idle_.ns) > kDrainNs) return give_up();
  if (!is_up || std::max(out_idle_.ns, in_idle_.ns) <= options_.peer_timeout_ns) return;
  const bool is_in = out_idle_.ns <= options_.peer_timeout_ns;
  const std::string what = is_in               ? "irecv from " + options_.peer + " did not complete"
                           : out_.is_refused() ? "isend to " + options_.peer + " took nothing"
                           : out_.is_under_way() ? "isend to " + options_.peer + " did not complete"
                                                 : options_.peer + " took no message";
  fail(timeout_error(net_.text + ": " + what + " for " +
                     std::to_string(options_.peer_timeout_ns / kSecond) +
                     " s (RIFFLE_PEER_TIMEOUT)"),
       true);
}

// ---- the end ----

void LibraryLink::look_at_end() {
  // To a peer that closes too, what is queued goes nowhere.
  const bool is_done = (!has_to_send() || heard_end_) && !out_.is_under_way();
  if (state_ == State::kClosing && is_done && !told_end_) {
    told_end_ = true;
    tell(LibraryFrame::kEnd, out_.begun());
  }
  if (heard_end_ && knows_all() && !told_ended_ && (state_ == State::kUp || told_end_)) {
    told_ended_ = true;
    tell(LibraryFrame::kEnded, out_.begun());
  }
  if (told_ended_) send_fault_ ? settle_all() : settle_queue();
  const bool has_answered = told_ended_ || !heard_end_;
  if (state_ == State::kClosing && heard_ended_ && knows_all() && has_answered) abort();
}

void LibraryLink::take_rest() {
  for (int i = 0; i < kMostLastPolls && state_ == State::kUp && !is_halted_; ++i) {
    if (!receive_on()) return;
  }
}

void LibraryLink::peer_is_gone() {
  if (state_ == State::kOver) return;
  if (state_ == State::kUp && receive_fault_ && !knows_all()) return fail(*receive_fault_, false);
  if (state_ == State::kUp && misses_messages()) {
    return fail(remote_error("it closed before all that it sent was in"), false);
  }
  if (state_ == State::kClosing) return abort();
  close_sides();
  state_ = State::kDeparted;
  owner_.has_departed(options_.number);
  if (!is_halted_) settle_all();
}

void LibraryLink::close(std::uint64_t now_ns) {
  if (state_ == State::kClosing) return;
  if (state_ != State::kUp || told_ended_) return abort();
  if (is_halted_ || send_fault_) {
    tell_failure(send_fault_ ? send_fault_->message() : "it closed after an error of its own");
    return abort();
  }
  state_ = State::kClosing;
  moved_ns_ = now_ns;
  out_idle_ = in_idle_ = {};
  header_.reset();
  queue_.copy_payloads();
  if (frame_ != nullptr && frame_->own_copy.empty()) {
    frame_->own_copy.assign(frame_->payload.begin(), frame_->payload.end());
    frame_->payload = frame_->own_copy;
  }
}

// The peer must not take for all what it got. Where all has left, it knows how much that is.
void LibraryLink::give_up() {
  log_warn(net_.text + ": the connection to " + options_.peer + " is closed after " +
           std::to_string(kDrainNs / kSecond) + " s in which nothing moved; " +
           std::to_string(bytes_to_send_) + " bytes had not left");
  if (!told_end_) tell_failure("it closed, and what it had sent did not leave");
  abort();
}

void LibraryLink::tell_failure(const std::string& why) {
  tell(LibraryFrame::kFailed, 0, why.substr(0, kMostLibraryText));
}

void LibraryLink::abort() {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  close_sides();
}

void LibraryLink::close_sides() {
  out_.close();
  in_.close();
}

// What the library did wrong and the peer's end does not explain.
Status LibraryLink::fault() const {
  if (send_fault_ && !heard_end_) return *send_fault_;
  return receive_fault_ && !knows_all() ? *receive_fault_ : Status::ok();
}

void LibraryLink::broke(std::optional<Status>* side, const Status& why) {
  *side = why;
  fault_ns_ = now_ns_;
}

void LibraryLink::fail(const Status& why, bool tell_peer) {
  if (state_ == State::kOver) return;
  const bool is_told = state_ != State::kClosing;
  abort();
  if (is_told) owner_.has_failed(options_.number, why, tell_peer);
}

}  // namespace riffle::nccl_net
