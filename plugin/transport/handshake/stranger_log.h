// The log of connections that a listener drops: of each kind the first at once, and what else comes
// by the minute in one line that counts it and names the last. What is left is told at the end. So
// no flood of strangers fills the log, or makes the thread that writes it late. The timers' thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plugin/transport/base/timer_service.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

enum class Stranger : std::uint8_t {
  kOneTooMany,  // of its address
  kSilent,      // it did not introduce itself in time
  kLeft,        // it hung up
  kForeign,     // another protocol, or another version of Riffle
  kRefused,     // it said who it is, and may not come in
};

class StrangerLog {
 public:
  static constexpr std::uint64_t kPeriodNs = 60'000'000'000;

  explicit StrangerLog(TimerService* timers) : timers_(timers) {}  // outlives it
  ~StrangerLog();
  StrangerLog(const StrangerLog&) = delete;
  StrangerLog& operator=(const StrangerLog&) = delete;

  void dropped(Stranger kind, const SocketAddress& from, const std::string& why);

 private:
  struct Period {
    bool runs = false;
    std::uint64_t more = 0;  // that no line has told of
    SocketAddress last;
    std::string why;
  };

  void start(Period* period);
  static void tell(Period* period) noexcept;

  TimerService* const timers_;
  std::array<Period, 5> periods_;  // by kind
};

}  // namespace riffle
