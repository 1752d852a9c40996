// Layout: the repeating sequence of iallreduce calls on one coll object, learned from their
// identities (identity.h), and where in it the next call stands.
//
// Two calls are the same call of the sequence if they belong to the same communicator and the same
// buffer and cover the same range with the same datatype and operator. A job that reduces every
// bucket through one scratch buffer shows nothing that would tell buckets of equal length apart;
// they count as one.
//
// Positions and digest are the same on all ranks: they depend on what the ranks share (the shapes
// and how many calls there were), not on addresses, nor on when a rank began to learn. Position 0
// is the first call of a bucket. Calls under `min_bytes` (as posted) or whose datatype and
// operator the caller does not want are outside: they have no position and disturb nothing, so an
// extra metric of four bytes now and then is no deviation. This too is decided from what all ranks
// see alike.
//
// A call whose identity is unsure is placed by (count, type, op) while the sequence is known; the
// caller decides what to do about it. One that does not fit ends the knowledge at that very call;
// learning starts again with it. Every rank sees it then if (count, type, op) show it; a call that
// only its identity tells from the expected one (Place::is_seen_by_all) escapes ranks that are not
// sure of it.
//
// A sequence that broke off soon was none (A A of A A A A B): the next one must explain more than
// twice as many buckets.
//
// Not thread safe: lives where the calls are made. Nothing is allocated once the sequence is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plugin/identity/call_identity.h"

namespace riffle {

struct LayoutOptions {
  // Posted bytes of one call. Not RIFFLE_COLLNET_MIN_BYTES, which is about whole collectives and
  // may be more than any call has.
  std::size_t min_bytes = 64 << 10;
  bool sums_of_floats_only = true;  // float, half, bfloat16
  // A sequence is known when it was seen this many times in a row.
  unsigned repeats = 2;
  std::size_t max_buckets = 1024;  // longest sequence
  std::size_t max_calls = 65536;
};

class Layout {
 public:
  // One call of the sequence.
  struct Piece {
    std::uint64_t comm_id = 0;
    std::uint32_t bucket = 0;      // which bucket of the sequence, from 0
    const void* buffer = nullptr;  // this rank's; not part of the digest
    std::uint64_t first = 0, valid = 0, total = 0, count = 0;  // elements
    int type = 0, op = 0;                                      // NCCL's numbers
  };

  struct Place {
    enum class Kind {
      kOutside,   // not for us: too small, or not a sum of floats
      kLearning,  // the sequence is not known
      kAt,        // the call is piece `position` of the known sequence
      kDeviates,  // the sequence was known and this call is not its next one: no longer known
    };
    Kind kind = Kind::kLearning;
    std::size_t position = 0;
    bool begins_step = false;     // position 0
    bool is_seen_by_all = false;  // kDeviates, by (count, type, op) alone
  };

  explicit Layout(const LayoutOptions& options = {});

  // Every accepted call, in order, sure or not.
  Place take(const CallShape& call, const CallIdentity& identity);
  // What take() would say, without taking.
  Place look(const CallShape& call, const CallIdentity& identity) const;

  bool is_known() const { return !pieces_.empty(); }
  // Whole sequences seen in a row without deviation, those that it was learned from included; 0
  // while unknown.
  std::uint64_t steady_steps() const;
  // Over the pieces' shapes, in order, comm_id included; 0 while unknown. Where the shapes alone
  // do not say where the sequence begins (two equal buckets in turn), how many calls there were
  // decides, and the digest says so.
  std::uint64_t digest() const { return digest_; }
  const std::vector<Piece>& pieces() const { return pieces_; }  // empty while unknown
  std::size_t next_position() const { return next_; }           // while known
  std::uint64_t deviations() const { return deviations_; }
  std::uint64_t calls() const { return calls_; }  // taken so far, without those outside

 private:
  // A bucket that was seen whole. `key` tells it from others on this rank, `shape` on any.
  struct Bucket {
    std::uint64_t key = 0, shape = 0;
    std::uint64_t first_call = 0;  // calls() before its first call
  };

  bool is_outside(const CallShape& call) const;
  void learn(const CallShape& call, const CallIdentity& identity);
  void close_bucket();
  void find_sequence();
  std::size_t needed(std::size_t period) const;
  bool repeats_with(std::size_t period) const;
  void settle(std::size_t period);
  void forget();

  const LayoutOptions options_;
  std::uint64_t calls_ = 0, deviations_ = 0;
  // Known.
  std::vector<Piece> pieces_;
  std::size_t next_ = 0, buckets_ = 0;
  std::uint64_t digest_ = 0;
  std::uint64_t learned_from_ = 0;  // buckets
  std::uint64_t matched_ = 0;       // calls since
  // Learning.
  std::vector<Bucket> history_;                                 // bounded; the newest last
  std::unordered_map<std::uint64_t, std::vector<Piece>> seen_;  // by key
  std::vector<Piece> open_;                                     // the bucket under way
  std::uint64_t open_comm_ = 0, open_number_ = 0, open_first_call_ = 0;
  bool is_open_ = false;
  std::size_t window_ = 0;  // buckets that the next sequence must explain at least
};

}  // namespace riffle
