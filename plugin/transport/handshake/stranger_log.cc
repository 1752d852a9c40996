#include "plugin/transport/handshake/stranger_log.h"

#include "plugin/config/caught.h"
#include "plugin/config/log.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

StrangerLog::~StrangerLog() {
  for (Period& period : periods_) tell(&period);
}

void StrangerLog::dropped(Stranger kind, const SocketAddress& from, const std::string& why) {
  Period& period = periods_.at(static_cast<std::size_t>(kind));
  if (period.runs) {
    ++period.more;
    period.last = from;
    period.why = why;
    return;
  }
  log_warn("dropped a connection from {}: {}", to_text(from), why);
  start(&period);
}

void StrangerLog::start(Period* period) {
  timers_->call_at(Reactor::now_ns() + kPeriodNs, [this, period] {
    period->runs = false;
    if (period->more == 0) return;
    tell(period);
    start(period);
  });
  period->runs = true;
}

// A line that there is no memory for is no reason to end anything.
void StrangerLog::tell(Period* period) noexcept {
  if (period->more == 0) return;
  const auto line = [period] {
    log_warn("dropped {} more connections, the last one from {}: {}", period->more,
             to_text(period->last), period->why);
  };
  catching(line, [](const Status&) {});
  period->more = 0;
}

}  // namespace riffle
