// What the published schemes share: rounds planned beforehand, messages of sparse blocks, counting.
#pragma once

#include <utility>
#include <vector>

#include "bench/sparse/scheme.h"
#include "bench/sparse/sums.h"
#include "sparse/schedule.h"
#include "sparse/select.h"
#include "sparse/wire.h"

namespace riffle::bench {

using Message = std::span<const std::uint8_t>;

// Bruck's all-gather of one item per worker in ceil(log2 P) rounds: in the round of gap g, rank v
// sends the first min(g, P-g) items from its own on to v-g.
Round gather_round(int rank, int workers, int phase, int gap);
void plan_gather(int rank, int workers, int phase, std::vector<Round>& rounds);
std::vector<int> gathered_items(int first, int workers, int gap);  // of one message, in its order

// Messages of direct sends under way at once, as Ok-Topk's authors have it.
inline constexpr int kBunch = 4;

// Direct sends to all others, at most `bunch` at a time, rotated: rank v begins with v+1.
void plan_direct(int rank, int workers, int phase, int bunch, std::vector<Round>& rounds);

class PlannedScheme : public Scheme {
 public:
  void prepare(std::span<const float> gradient) final;
  void begin(std::span<const float> gradient) final;
  bool is_done() const final { return at_ == rounds_.size(); }
  const Round& round() const final { return rounds_[at_]; }
  Message message(std::size_t i) final { return messages_[i]; }
  bool go_ahead() final;
  Status take(std::span<const Message> messages) final;
  Sent sent() const final { return sent_; }
  double reselect_us() final { return reselect_us_; }
  // Unless overridden: of result().
  void write_result(std::span<float> out) const override;
  std::uint64_t result_entries() const override;
  void write_undelivered(std::span<float> out) const override;

 protected:
  PlannedScheme(const SchemeShape& shape, int rank);

  // Loads, selects from input() and plans rounds_.
  virtual void start() = 0;
  // Says with send_blocks() or send_numbers() what goes to round().to[i], for all i in turn.
  virtual void compose(std::size_t i) = 0;
  // What came from round().from[i], with read_blocks() or read_numbers().
  virtual Status absorb(std::size_t i, Message bytes) = 0;
  // All of the round is there; may append rounds.
  virtual void settle() {}

  struct Block {  // a stretch of the gradient and its entries, counted from its beginning
    std::uint64_t begin = 0, elements = 0;
    sparse::Entries entries;
  };

  virtual std::span<const Block> result() const { return blocks_; }  // when done

  void send_blocks(const std::vector<std::pair<std::uint32_t, const Block*>>& labelled);
  Status read_blocks(Message bytes,
                     const std::vector<std::pair<std::uint32_t, Block*>>& labelled) const;
  void send_numbers(const std::vector<std::uint32_t>& numbers);
  Status read_numbers(Message bytes, std::span<std::uint32_t> numbers) const;
  // The item per worker that is gathered, in rounds of plan_gather.
  void send_gathered(std::vector<Block>& items);
  Status read_gathered(Message bytes, std::vector<Block>& items) const;

  // Once per call: what is selected from, the gradient and the residual added. Every published
  // scheme keeps a residual, so that is part of its time.
  void load();
  // The same, and selected_ becomes all of magnitude `least` and more, in the same pass.
  void load_and_select(std::uint32_t least);
  std::span<const float> input() const { return residual_; }
  std::uint64_t elements() const { return shape_.elements; }
  int workers() const { return shape_.workers; }
  int rank() const { return rank_; }
  std::uint64_t k() const { return shape_.kept(); }
  sparse::Selector& selector() { return selector_; }
  Sums& sums() { return sums_; }

  // For the time of its life everything counts as selection within the call.
  class Reselection {
   public:
    explicit Reselection(PlannedScheme& scheme) : scheme_(scheme), start_us_(thread_us()) {}
    ~Reselection() { scheme_.reselect_us_ += thread_us() - start_us_; }
    Reselection(const Reselection&) = delete;

   private:
    PlannedScheme& scheme_;
    double start_us_;
  };

  std::vector<Round> rounds_;
  std::vector<Block> blocks_;   // the result, unless result() is overridden
  std::vector<Block> dropped_;  // here, of sums
  sparse::Entries selected_;    // of input(), in the whole of it

 private:
  void compose_all();
  void keep_residual();
  sparse::MessageKind kind() const;

  SchemeShape shape_;
  int rank_;
  std::span<const float> gradient_;
  // Zeros before a call, so that each is given the same; input() in it; then what stays, but for
  // what was dropped of sums.
  std::vector<float> residual_;
  std::size_t at_ = 0;
  bool is_ahead_ = false;  // at_ is the round behind the one whose messages take() is to get
  std::uint32_t call_ = 0;
  sparse::Selector selector_;
  Sums sums_;
  std::vector<sparse::MessageWriter> writers_;
  std::vector<std::vector<std::uint8_t>> numbers_;
  std::vector<Message> messages_;
  Sent sent_;
  double reselect_us_ = 0;
  mutable std::vector<sparse::BlockShape> shapes_;
  mutable std::vector<sparse::Entries> read_;
};

// One per scheme.
std::unique_ptr<Scheme> make_topka(const SchemeShape& shape, int rank);
std::unique_ptr<Scheme> make_topkdsa(const SchemeShape& shape, int rank);
std::unique_ptr<Scheme> make_gtopk(const SchemeShape& shape, int rank);
std::unique_ptr<Scheme> make_oktopk(const SchemeShape& shape, int rank);
std::unique_ptr<Scheme> make_spardl(const SchemeShape& shape, int rank, bool reuses);
std::unique_ptr<Scheme> make_ring(const SchemeShape& shape, int rank, bool is_bfloat16);

}  // namespace riffle::bench
