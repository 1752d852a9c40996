// Timers of one reactor: calls ordered by time. Reactor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace riffle {

class Timers {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  std::uint64_t add(std::uint64_t when_ns, std::function<void()> call);
  void cancel(std::uint64_t id);  // harmless for a timer that ran
  std::uint64_t next_ns() const { return calls_.empty() ? kNever : calls_.begin()->first.first; }
  // The earliest call that is due at `now_ns`, taken out; empty if none.
  std::function<void()> take_due(std::uint64_t now_ns);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::function<void()>> calls_;  // (time, id)
  std::unordered_map<std::uint64_t, std::uint64_t> when_of_;                        // by id
  std::uint64_t next_id_ = 1;
};

}  // namespace riffle
