// One sparse all-reduce of one chunk, as one worker sees it: a state machine that says what to send
// and takes what came, and never waits. The driver moves the bytes:
//
//   exchange.begin(state, gradient, element, sequence);
//   while (!exchange.is_done()) {
//     send exchange.message() to exchange.to(); receive bytes from exchange.from();
//     if (Status s = exchange.receive(bytes); !s) -> the peer misbehaves; state is as before begin
//   }
//   exchange.write_result(out, element);
//
// The message of a step is ready as soon as the step before is done, and stays valid until
// receive() of its own step is called: the driver has finished sending by then, or has copied.
//
// All workers get the same bits: sums are made in the order of steps or teams, never of arrival.
// That needs the default float environment (round to nearest, subnormals kept) in every call.
//
// Infinities and NaN: every such element reaches all workers, whatever the budgets. If the result
// has any (from an input, or from a sum that overflowed), has_non_finite() is true on all workers,
// no finite entry is delivered, and no worker's state changes. The driver may then repeat the call
// densely, which gives exactly what a dense call gives.
//
// One object serves any number of chunks of its layout, one call after the other; begin() abandons
// a call that is under way, and `out` may be the gradient's own memory. Workers are named by
// positions (layout.h); which node stands at which position, racks as teams for instance, is the
// driver's.
//
// One thread at a time. Buffers grow in the first calls and are then reused. A step or position out
// of range, or receive() when done, is a broken invariant (RIFFLE_CHECK).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sparse/element.h"
#include "sparse/entries.h"
#include "sparse/layout.h"
#include "sparse/residual.h"
#include "sparse/schedule.h"
#include "sparse/select.h"
#include "sparse/wire.h"

namespace riffle::sparse {

enum class Selection : std::uint8_t { kExact = 0, kReuse = 1 };

struct ExchangeOptions {
  Across across = Across::kGathered;
  Selection selection = Selection::kExact;
  ResidualPolicy residual = ResidualPolicy::kGlobal;
  // On the wire: kFloat32, or kBfloat16, whose rounding errors stay in the residual.
  Element values = Element::kFloat32;
  float momentum_rate = 0.1F;  // kEf21: the weight of a new gradient in v, in (0, 1]
  Isa isa = best_isa();
};

Status validate(const Layout& layout, const ExchangeOptions& options);

class Exchange {
 public:
  // Layout and options that validate() accepts.
  Exchange(const Layout& layout, const ExchangeOptions& options, int position);

  // From the next call on; states that come along must have been moved (ChunkState::move_to).
  // Precondition: no call is under way.
  void set_density(double density);

  // `gradient` is read here only. `state` must outlive the call and fit layout and policy.
  void begin(ChunkState& state, const void* gradient, Element element, std::uint32_t sequence);

  bool is_done() const { return at_ == steps_.size(); }
  int to() const;
  int from() const;
  std::span<const std::uint8_t> message();
  Status receive(std::span<const std::uint8_t> bytes);

  // When done:
  bool has_non_finite() const { return non_finite_; }
  // The sum over workers: every element, mostly zeros. For kEf21 the running sum.
  void write_result(void* out, Element element) const;
  // What was delivered by this call, block by block.
  std::span<const Entries> blocks() const { return final_; }
  const Layout& layout() const { return layout_; }

  // The call under way is to end without a change of the state: a worker knows already that its
  // result will not be used.
  void keep_state() { keeps_state_ = true; }

  // Sent by this worker in this call so far.
  const Traffic& traffic() const { return traffic_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Changed {
    std::uint32_t index;  // in the block
    float value;
  };

  // Elements of a block. Until it is selected from: those that others sent something for, as they
  // are with it, and all that reach the block's threshold where the pass that loaded the chunk
  // collected these, so that nothing is read twice. Then what stays of them and of what was
  // selected.
  struct Touched {
    Entries entries;
    bool has_candidates = false;
  };

  void load_chunk(const void* gradient, Element element);
  void load_and_collect(const void* gradient, Element element);
  void settle();           // all that lies between two messages
  void prepare_message();  // of the step at hand
  void take(Phase phase, const Step& step);
  void sparsify(int block, std::size_t budget, Entries& kept);
  bool select_candidates(int block, std::size_t budget, Entries& kept);
  void scan(int block, std::size_t budget, Entries& kept);
  void note_left(int block, const Entries& kept);
  void round_values(Entries& kept) const;
  void add_to_touched(int block, const Entries& received);
  void return_dropped(int copies);
  void round_merged(int copies);
  void take_own_block();
  void merge_gathered();
  void merge_recursive(int from_team, int copies);
  void finish();
  void commit();
  void commit_residual();
  BlockShape shape_of(Phase phase, int label) const;

  Layout layout_;
  ExchangeOptions options_;
  int team_ = 0, rank_ = 0;
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  ChunkState* state_ = nullptr;
  std::uint32_t sequence_ = 0;
  bool own_taken_ = false;  // the own block was cut to what this team offers
  bool own_final_ = false;  // and merged with the other teams' offers

  Selector selector_;
  std::vector<float> chunk_;           // gradient + residual
  std::vector<float> momentum_next_;   // kEf21
  std::vector<Touched> touched_;       // by block
  std::vector<Changed> returned_;      // of the own block: this worker's part of what teams dropped
  std::vector<Threshold> thresholds_;  // become the state's when the call succeeds
  std::vector<Entries> bag_;           // of the message at hand, in or out
  std::vector<BlockShape> shapes_;     // of bag_
  std::vector<Entries> offers_;        // the own block as each team has it
  std::vector<Entries> final_;         // by block
  Entries merged_, sum_, dropped_;
  std::uint64_t union_size_ = 0;
  MessageWriter writer_;
  bool non_finite_ = false;
  bool keeps_state_ = false;
  Traffic traffic_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace riffle::sparse
