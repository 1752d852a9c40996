// What the compared schemes are given: the same for all of them, another in every step.
//
// Generated: heavy-tailed, as gradients are. An element's scale is a product of two log-normal
// numbers, of its layer (64 Ki elements) and of its own, the same in every step and for all
// workers; times a bell-shaped number of which kCommon of the variance is common to the workers of
// a step.
//
// Recorded: a file of bench/sparse/record_gradients.py, float32, workers after workers, steps after
// steps. Little-endian: 8 bytes "RIFGRAD1", u32 workers, u32 steps, u64 elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::bench {

class Gradients {
 public:
  static constexpr double kCommon = 0.3;

  // `file` empty: generated. A file must have as many workers and elements at least.
  static Result<Gradients> open(const std::string& file, int workers, std::uint64_t elements);
  Gradients(Gradients&& other) noexcept;
  Gradients& operator=(Gradients&&) = delete;
  ~Gradients();

  // Recorded steps are repeated from the first when they are used up.
  void fill(std::uint64_t step, int worker, std::span<float> out) const;

 private:
  Gradients() = default;
  void generate(std::uint64_t step, int worker, std::span<float> out) const;

  std::vector<float> scales_;  // generated: log-normal numbers to draw from
  const std::byte* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::uint32_t workers_ = 0, steps_ = 0;
  std::uint64_t elements_ = 0;
};

}  // namespace riffle::bench
