#include "plugin/transport/tcp/stranger_log.h"

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
  period->runs = true;
  timers_->call_at(Reactor::now_ns() + kPeriodNs, [this, period] {
    period->runs = false;
    if (period->more == 0) return;
    tell(period);
    start(period);
  });
}

void StrangerLog::tell(Period* period) {
  if (period->more == 0) return;
  log_warn("dropped {} more connections, the last one from {}: {}", period->more,
           to_text(period->last), period->why);
  period->more = 0;
}

}  // namespace riffle
