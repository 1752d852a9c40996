// A published way to all-reduce sparse gradients, as one worker runs it: a state machine that says
// what to send and takes what came, and never waits. The driver moves the bytes:
//
//   scheme.prepare(gradient);
//   scheme.begin(gradient);
//   while (!scheme.is_done()) {
//     for each i: send message(i) to round().to[i]; receive one message from each of round().from
//     if (scheme.go_ahead()) send what the next round sends, before take() and not after it
//     if (Status s = scheme.take(messages); !s) -> a peer misbehaves; the scheme is of no use then
//   }
//   scheme.write_result(out);
//
// Messages are numbered per pair of workers: what comes from one worker comes in the order sent.
//
// All schemes see the same gradient, select about k = density * elements of it in begin(), and keep
// about k of the sum, so that their times compare. They write and read messages with the library's
// own format (sparse/wire.h) and add with its merge. Every sparse scheme adds a residual to the
// gradient and keeps a new one, as published; that of zeros, so that every scheme is given the same
// input. One thread at a time. A second begin() starts anew.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::bench {

struct Round {
  std::vector<int> to, from;  // ranks
  // The next round waits until what this one sends has arrived: a sender to several, one after the
  // other, as a blocking send does. Else only what is to come is waited for.
  bool waits_for_delivery = false;
  // The scheme's own. goes_ahead: what the next round sends is known before this one's messages.
  int phase = 0, step = 0;
  bool goes_ahead = false;
};

struct Sent {  // by one worker in one call
  std::uint64_t messages = 0;
  std::uint64_t entries = 0;  // an index and a value; of dense schemes a value
  std::uint64_t bytes = 0;    // of messages
};

// What the literature says that one worker sends in one call: of the worker that sends most.
struct Formula {
  std::uint64_t messages = 0;
  std::uint64_t least_entries = 0, most_entries = 0;  // supports equal, supports disjoint
};

struct SchemeShape {
  int workers = 2;
  std::uint64_t elements = 0;
  double density = 0.01;
  // spardl-teams and spardl-reuse alone.
  int teams = 1;
  bool is_recursive = false;   // across the teams, whose number is a power of two
  std::vector<int> order;      // rank at each position, teams side by side; empty: the ranks' order
  std::uint64_t kept() const;  // k: at least 1
};

class Scheme {
 public:
  virtual ~Scheme() = default;
  // What a call needs done that is no part of it; before every begin(), with no clock running.
  virtual void prepare(std::span<const float> /*gradient*/) {}
  // Selects what is to go out first. `gradient` must stay as it is until the next begin().
  virtual void begin(std::span<const float> gradient) = 0;

  virtual bool is_done() const = 0;
  virtual const Round& round() const = 0;                            // not done
  virtual std::span<const std::uint8_t> message(std::size_t i) = 0;  // to round().to[i]
  // All messages of round() are there. True: what the next one sends does not depend on them, and
  // round() and message() are the next's from now on; take() still takes those.
  virtual bool go_ahead() { return false; }
  // One message from each of round().from, in that order.
  virtual Status take(std::span<const std::span<const std::uint8_t>> messages) = 0;

  // When done. The sum that was delivered, zero elsewhere: the same on all workers.
  virtual void write_result(std::span<float> out) const = 0;
  // What of the gradients was not delivered and dropped here: the sum over the workers of this,
  // plus the result, is the sum of the gradients.
  virtual void write_undelivered(std::span<float> out) const = 0;
  virtual std::uint64_t result_entries() const = 0;
  virtual Sent sent() const = 0;
  // Processor time of the selections between begin() and the end.
  virtual double reselect_us() = 0;
  virtual Formula formula() const = 0;
};

// topka     all-gather of every worker's k entries (Bruck's), added up by each worker
// topkdsa   SparCML's split all-gather (Renggli et al., SC 2019): slices go straight to the
//           owners of their regions, four at a time; the sums, which grow, are gathered, dense
//           where shorter
// gtopk     gTop-k (Shi et al., ICDCS 2019): a tree of pairwise sums cut to k, then a broadcast; a
//           worker count that is no power of two is filled up with workers that have nothing
// oktopk    Ok-Topk (Li and Hoefler, PPoPP 2022): thresholds found exactly every 32nd call and
//           reused in between, regions balanced every 64th, slices to the owners in rotated order,
//           a gather of what exceeds the global threshold, evened out where one has over four times
//           the mean
// spardl    this library (sparse/exchange.h), exact selection, one team
// spardl-reuse  the same, selecting by the thresholds of the call before, as the plugin does: up to
//           a quarter of k more or less; in SchemeShape::teams teams
// spardl-teams  exact in SchemeShape::teams teams
// ring, ring-bf16   the dense ring, float32 sums; values travel as float32 or bfloat16
//
// topka and topkdsa deliver up to P * k entries as published; here their sum is cut to k at the
// end.
const std::vector<std::string>& scheme_names();
bool has_teams(const std::string& name);
// NAME, or NAME/1M: in chunks of so many bytes of float32, each all-reduced by itself, several at a
// time. K, M as units; at least 1K.
struct SchemeName {
  std::string name;
  std::uint64_t chunk_bytes = 0;  // 0: in one piece
};
Result<SchemeName> parse_scheme(const std::string& text);
// An unknown name, or a shape that it cannot take, is an error that says what is accepted.
Result<std::unique_ptr<Scheme>> make_scheme(const std::string& name, const SchemeShape& shape,
                                            int rank);

}  // namespace riffle::bench
