// The eight step slots between a "kernel" and a proxy, with NCCL's counters.
//
// Sending: the kernel fills slot (tail % 8) while tail < credit and advances tail; the proxy ships
// it and raises credit again. Receiving: the proxy fills slots and advances tail; the kernel reads
// them and advances head. Both sides run on the progress thread of their communicator, one after
// the other, as GPU and proxy thread would side by side: plain integers suffice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace riffle::host {

inline constexpr std::uint64_t kSteps = 8;  // NCCL_STEPS

constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t unit) {
  return (x + unit - 1) / unit * unit;
}

struct Fifo {
  std::array<std::byte*, kSteps> slot{};
  std::array<std::size_t, kSteps> bytes{};  // sending: what the kernel put there
  std::uint64_t head = 0;                   // receiving: steps the kernel has consumed
  std::uint64_t tail = 0;                   // steps produced
  std::uint64_t credit = kSteps;            // sending: steps the kernel may fill up to
};

// Which end a program of the kernel talks to, and how many steps one of its chunks takes.
struct Steps {
  int chunk = 1;  // steps per chunk
  int slice = 1;  // steps per message
};

}  // namespace riffle::host
