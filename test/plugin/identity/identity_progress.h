// The progress threads of the model (identity_job.h): they tell the book of the posted collectives,
// make their calls in NCCL's order of chunks and channels, and hold each answer against the truth.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "plugin/identity/identity_book.h"
#include "test/plugin/identity/identity_job.h"

namespace riffle::identity {

class Progress {
 public:
  // All of it the world's. `mask`: the events that the book asks for.
  Progress(std::mt19937_64* random, const Troubles& troubles, IdentityBook* book,
           const std::vector<Communicator>* comms, const int* mask)
      : random_(random), troubles_(troubles), book_(book), comms_(comms), mask_(mask) {}

  // The progress thread takes what was posted, makes a call, or sleeps.
  bool turn(Thread& t) {
    if (t.running.empty() && t.posted.empty()) {
      if ((*mask_ & 32) != 0) book_->slept(*t.queue);
      return false;
    }
    if (t.running.empty() || (!t.posted.empty() && chance(3))) {
      const std::size_t n = std::min<std::size_t>(t.posted.size(), 1 + pick(4));
      std::size_t most = 0;
      for (std::size_t i = 0; i < n; ++i) most = std::max(most, t.posted[i].events.size());
      // One collective after the other, or channel by channel as in a group.
      if (chance(4)) {
        for (std::size_t e = 0; e < most; ++e) {
          for (std::size_t i = 0; i < n; ++i) {
            if (e < t.posted[i].events.size()) tell(t, t.posted[i], e);
          }
        }
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t e = 0; e < t.posted[i].events.size(); ++e) tell(t, t.posted[i], e);
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        t.running.push_back(std::move(t.posted.front()));
        t.posted.pop_front();
      }
      return true;
    }
    call(t);
    return true;
  }

  const Tally& tally() const { return tally_; }

 private:
  std::uint64_t pick(std::uint64_t n) { return (*random_)() % n; }
  bool chance(std::uint64_t n) { return pick(n) == 0; }

  void tell(Thread& t, const Collective& c, std::size_t event) {
    book_->proxy_op_started(*t.queue, c.context, c.events[event]);
  }

  void call(Thread& t) {
    Collective& c = t.running.front();
    const Communicator& comm = (*comms_)[c.comm];
    const std::uint64_t element = kTypeBytes[c.type];
    CallShape shape;
    shape.coll = comm.coll;
    shape.type = kTypeNumbers[c.type];
    shape.op = c.op;
    CallIdentity truth;
    bool is_last;
    if (c.is_registered) {
      const std::uint64_t left = c.count - c.element;
      shape.count = std::min<std::uint64_t>(left, 1 + c.count / 3);
      shape.send = pointer(c.buffer + c.element * element);
      shape.recv = pointer(c.output + c.element * element);
      truth.first_element = c.element;
      truth.valid_elements = shape.count;
      c.element += shape.count;
      is_last = c.element == c.count;
      ++tally_.registered;
    } else {
      const std::uint64_t chunk = c.chunk_bytes / element;
      shape.count = std::min<std::uint64_t>(8, c.channels - 8 * c.group) * chunk;
      const std::uint64_t offset =
          c.step % 8 * comm.channels * kSlotBytes + 8 * c.group * c.chunk_bytes;
      shape.send = pointer(comm.region + offset);
      shape.recv = pointer(comm.region + offset + 8 * comm.channels * kSlotBytes);
      truth.first_element = (c.step * c.channels + 8 * c.group) * chunk;
      truth.valid_elements =
          std::min(shape.count, c.count - std::min(c.count, truth.first_element));
      if (++c.group == ceil_of(c.channels, 8)) {
        c.group = 0;
        ++c.step;
      }
      is_last = c.step == c.steps;
    }
    if (chance(8)) {
      // Refused and offered again.
      const CallIdentity looked = book_->look(*t.queue, shape);
      if (looked.is_sure) check(looked, truth, c, is_last);
      ++tally_.looked;
    }
    const CallIdentity identity = book_->identify(*t.queue, shape);
    if (identity.is_sure) {
      ++tally_.sure;
      tally_.zero_valid += truth.valid_elements == 0 ? 1 : 0;
      check(identity, truth, c, is_last);
    } else {
      ++tally_.unsure;
      EXPECT_STRNE(identity.why_not, "");
    }
    if (is_last) t.running.pop_front();
  }

  void check(const CallIdentity& said, const CallIdentity& truth, const Collective& c,
             bool is_last) {
    const bool is_right =
        said.comm_id == c.comm_id && said.bucket == c.number && said.buffer == pointer(c.buffer) &&
        said.output == pointer(c.output) && said.first_element == truth.first_element &&
        said.valid_elements == truth.valid_elements && said.total_elements == c.count &&
        (troubles_.loses_events || said.is_last == is_last);
    tally_.wrong += is_right ? 0 : 1;
  }

  std::mt19937_64* const random_;
  const Troubles troubles_;
  IdentityBook* const book_;
  const std::vector<Communicator>* const comms_;
  const int* const mask_;
  Tally tally_;
};

}  // namespace riffle::identity
