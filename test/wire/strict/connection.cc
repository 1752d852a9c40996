#include "test/wire/strict/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

constexpr std::uint32_t kMagic = 0x57a1c7;
constexpr std::size_t kKeptRequests = 100;  // that are over, so that their use is noticed

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connection::Connection(int socket, bool sends_, void* offload_)
    : fd(socket), sends(sends_), offload(offload_) {}

Connection::~Connection() { ::close(fd); }

int Connection::outstanding() const {
  return static_cast<int>(
      std::ranges::count_if(requests, [](const auto& r) { return !r->is_over; }));
}

const Request* Connection::oldest_to_forget() const {
  const bool is_old = requests.size() > kKeptRequests && requests.front()->is_over;
  return is_old ? requests.front().get() : nullptr;
}

Request* Connection::add(std::vector<Part> parts, int patience) {
  requests.push_back(std::make_unique<Request>(Request{this, false, std::move(parts), patience}));
  Request* const r = requests.back().get();
  (sends ? unsent_ : posted_).push_back(r);
  if (!sends) take_kept();
  return r;
}

void Connection::progress() {
  if (is_broken) return;
  sends ? send_on() : receive_on();
}

void Connection::send_on() {
  while (!unsent_.empty()) {
    Part& part = unsent_.front()->parts[0];
    const Header header{kMagic, part.tag, part.size};
    const bool in_header = sent_ < sizeof header;
    const char* from = in_header ? reinterpret_cast<const char*>(&header) + sent_
                                 : part.data + (sent_ - sizeof header);
    const std::size_t left =
        in_header ? sizeof header - sent_ : part.size - (sent_ - sizeof header);
    if (left > 0) {
      const ssize_t n = ::send(fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) {
        is_broken = !would_wait();
        return;
      }
      sent_ += static_cast<std::size_t>(n);
    }
    if (sent_ < sizeof header + part.size) continue;
    part.is_complete = true;
    part.arrived = part.size;
    unsent_.pop_front();
    sent_ = 0;
  }
}

Part* Connection::waiting_part(int tag) {
  for (Request* r : posted_) {
    for (Part& part : r->parts) {
      if (part.tag == tag && !part.is_matched) return &part;
    }
  }
  return nullptr;
}

// The header is in: where its bytes go.
void Connection::begin_message() {
  demand(header_.magic == kMagic, "the stream between two connections is out of step");
  target_ = waiting_part(header_.tag);
  if (target_ == nullptr) {
    ++objects().probe.unexpected;
    kept_.push_back({header_, std::vector<char>(header_.size)});
    return;
  }
  demand(header_.size <= target_->size, "a message is larger than its receive");
  target_->is_matched = true;
}

void Connection::receive_on() {
  while (true) {
    const bool in_header = got_ < sizeof header_;
    char* to = reinterpret_cast<char*>(&header_) + got_;
    std::size_t left = sizeof header_ - got_;
    if (!in_header) {
      const std::size_t at = got_ - sizeof header_;
      to = (target_ != nullptr ? target_->data : kept_.back().data.data()) + at;
      left = header_.size - at;
    }
    if (left > 0) {
      const ssize_t n = ::recv(fd, to, left, MSG_DONTWAIT);
      if (n == 0) is_broken = true;
      if (n < 0) is_broken = !would_wait();
      if (n <= 0) return;
      got_ += static_cast<std::size_t>(n);
      if (in_header && got_ == sizeof header_) begin_message();
    }
    if (got_ < sizeof header_ || got_ < sizeof header_ + header_.size) continue;
    if (target_ != nullptr) {
      target_->arrived = header_.size;
      target_->is_complete = true;
    } else {
      take_kept();
    }
    got_ = 0;
    target_ = nullptr;
    drop_complete();
  }
}

// Kept messages that a receive waits for by now; the last of them may still arrive.
void Connection::take_kept() {
  const bool is_arriving =
      got_ >= sizeof header_ && target_ == nullptr && got_ < sizeof header_ + header_.size;
  for (auto m = kept_.begin(); m != kept_.end();) {
    if (is_arriving && std::next(m) == kept_.end()) return;
    Part* const part = waiting_part(m->header.tag);
    if (part == nullptr) {
      ++m;
      continue;
    }
    demand(m->data.size() <= part->size, "a message is larger than its receive");
    std::copy(m->data.begin(), m->data.end(), part->data);
    part->arrived = m->data.size();
    part->is_matched = part->is_complete = true;
    m = kept_.erase(m);
  }
  drop_complete();
}

void Connection::drop_complete() {
  std::erase_if(posted_, [](const Request* r) {
    return std::ranges::all_of(r->parts, [](const Part& p) { return p.is_complete; });
  });
}

}  // namespace strict
