// The centre of the ranks' bootstrap: collects the parts of each gather by its list of members and
// answers when it is complete. Runs in the process that starts the ranks, or in a thread of one
// rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace riffle::host {

class Hub {
 public:
  using Clock = std::chrono::steady_clock;
  using OnNote = std::function<void(int rank, const std::string& text)>;

  // One socket per rank, in rank order; their other ends belong to the ranks' Bootstraps. on_note
  // may be empty.
  Hub(std::vector<int> fds, OnNote on_note) : fds_(std::move(fds)), on_note_(std::move(on_note)) {}
  ~Hub() { close_all(); }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Serves until every rank has closed its end. False: the deadline passed.
  bool serve(Clock::time_point deadline);
  void close_all();

 private:
  struct Gather {
    std::uint64_t bytes = 0;
    std::map<int, std::vector<std::byte>> parts;
  };

  bool read_one(int rank, Clock::time_point deadline);
  void answer(const std::vector<int>& members, Clock::time_point deadline);
  void lose(int rank, Clock::time_point deadline);

  std::vector<int> fds_;  // -1: the rank has closed its end
  OnNote on_note_;
  std::map<std::vector<int>, Gather> gathers_;
};

}  // namespace riffle::host
