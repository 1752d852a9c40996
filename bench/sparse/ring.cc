#include <algorithm>
#include <cstring>

#include "bench/sparse/planned_scheme.h"
#include "sparse/layout.h"

namespace riffle::bench {
namespace {

// Dense: P-1 rounds in which sums grow around the ring, P-1 in which they go round.
class Ring final : public Scheme {
 public:
  Ring(const SchemeShape& shape, int rank, bool is_bfloat16)
      : workers_(shape.workers),
        rank_(rank),
        type_(is_bfloat16 ? sparse::Element::kBfloat16 : sparse::Element::kFloat32),
        blocks_({shape.workers, 1, shape.elements, shape.density}),
        sum_(shape.elements) {
    round_.to = {(rank + 1) % workers_};
    round_.from = {(rank + workers_ - 1) % workers_};
  }

  void prepare(std::span<const float> gradient) override {
    std::ranges::copy(gradient, sum_.begin());
  }
  void begin(std::span<const float>) override {
    at_ = 0;
    sent_ = {};
    compose();
  }
  bool is_done() const override { return at_ == 2 * (workers_ - 1); }
  const Round& round() const override { return round_; }
  Message message(std::size_t) override { return message_; }

  Status take(std::span<const Message> messages) override {
    const int block = sent_block(at_ + 1);  // what comes now goes on in the next round
    const std::size_t count = blocks_.size_of(block);
    if (messages[0].size() != count * size_of(type_)) {
      return remote_error("a block has " + std::to_string(messages[0].size()) +
                          " bytes, expected " + std::to_string(count * size_of(type_)));
    }
    float* to = sum_.data() + blocks_.begin_of(block);
    const bool adds = at_ < workers_ - 1;
    if (type_ == sparse::Element::kFloat32 && !adds) {
      std::memcpy(to, messages[0].data(), messages[0].size());
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        const float value = sparse::load(messages[0].data(), type_, i);
        to[i] = adds ? to[i] + value : value;
      }
    }
    ++at_;
    if (!is_done()) compose();
    return Status::ok();
  }

  void write_result(std::span<float> out) const override { std::ranges::copy(sum_, out.begin()); }
  void write_undelivered(std::span<float> out) const override { std::ranges::fill(out, 0.0F); }
  std::uint64_t result_entries() const override { return sum_.size(); }
  Sent sent() const override { return sent_; }
  double reselect_us() override { return 0; }
  Formula formula() const override {
    const auto p = static_cast<std::uint64_t>(workers_);
    const std::uint64_t block = (sum_.size() + p - 1) / p;
    return {2 * (p - 1), 2 * (sum_.size() / p) * (p - 1), 2 * block * (p - 1)};
  }

 private:
  int sent_block(int round) const { return (rank_ + 2 * workers_ - round) % workers_; }

  void compose() {
    const int block = sent_block(at_);
    const std::size_t count = blocks_.size_of(block);
    float* from = sum_.data() + blocks_.begin_of(block);
    message_.resize(count * size_of(type_));
    if (type_ == sparse::Element::kFloat32) {
      std::memcpy(message_.data(), from, message_.size());
    } else {
      // Who has the sum rounds it for itself as well, so that all have the same.
      const bool is_sum = at_ >= workers_ - 1;
      for (std::size_t i = 0; i < count; ++i) {
        sparse::store(message_.data(), type_, i, from[i]);
        if (is_sum) from[i] = sparse::load(message_.data(), type_, i);
      }
    }
    ++sent_.messages;
    sent_.entries += count;
    sent_.bytes += message_.size();
  }

  int workers_, rank_;
  sparse::Element type_;
  sparse::Layout blocks_;
  std::vector<float> sum_;
  std::vector<std::uint8_t> message_;
  Round round_;
  int at_ = 0;
  Sent sent_;
};

}  // namespace

std::unique_ptr<Scheme> make_ring(const SchemeShape& shape, int rank, bool is_bfloat16) {
  return std::make_unique<Ring>(shape, rank, is_bfloat16);
}

}  // namespace riffle::bench
