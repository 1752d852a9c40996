#include "plugin/collective/adapt/rate_reports.h"

#include <algorithm>

#include "topology/fabric/fabric.h"

namespace riffle {
namespace {

void put_rate(ByteWriter* w, const probe::PassiveRate& r) {
  w->number(static_cast<std::uint64_t>(r.limit_kbps));
  w->number(static_cast<std::uint64_t>(r.peak_kbps));
  w->number(static_cast<std::uint64_t>(r.limit_ms));
}

probe::PassiveRate get_rate(ByteReader* reader) {
  // No link carries more, or for longer, than this; so sums and products stay in range.
  const auto number = [reader] {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(reader->number(), 1ull << 40));
  };
  probe::PassiveRate r;
  r.limit_kbps = number();
  r.peak_kbps = number();
  r.limit_ms = number();
  return r;
}

}  // namespace

std::uint64_t processor_percent(std::uint64_t wanted_ns, std::uint64_t busy_ns,
                                std::uint64_t elapsed_ns) {
  const std::uint64_t of_ns = busy_ns > 0 ? busy_ns : elapsed_ns;
  return of_ns > 0 ? std::min<std::uint64_t>(100, wanted_ns * 100 / of_ns) : 0;
}

void put_rates(ByteWriter* w, const std::vector<NodeRates>& rates) {
  w->number(rates.size());
  for (const NodeRates& r : rates) {
    w->number(static_cast<std::uint64_t>(r.rank));
    put_rate(w, r.report.out);
    put_rate(w, r.report.in);
    put_rate(w, r.report.far);
    w->number(static_cast<std::uint64_t>(r.report.active_ms));
    for (const std::uint64_t n :
         {r.busy.bytes, r.busy.busy_ns, r.busy.bursts, r.processor, r.others}) {
      w->number(n);
    }
    w->number(r.pairs.size());
    for (const probe::PairTime& p : r.pairs) {
      w->number(p.bytes);
      w->number(p.busy_us);
    }
  }
}

std::vector<NodeRates> get_rates(ByteReader* reader) {
  std::vector<NodeRates> rates;
  for (std::uint64_t n = reader->number(); n > 0 && reader->is_ok(); --n) {
    NodeRates r;
    r.rank = static_cast<int>(std::min<std::uint64_t>(reader->number(), kMaxNodes));
    r.report.out = get_rate(reader);
    r.report.in = get_rate(reader);
    r.report.far = get_rate(reader);
    r.report.active_ms =
        static_cast<std::int64_t>(std::min<std::uint64_t>(reader->number(), 1ull << 40));
    for (std::uint64_t* n :
         {&r.busy.bytes, &r.busy.busy_ns, &r.busy.bursts, &r.processor, &r.others}) {
      *n = std::min<std::uint64_t>(reader->number(), 1ull << 50);
    }
    for (std::uint64_t p = reader->number(); p > 0 && reader->is_ok(); --p) {
      const std::uint64_t bytes = std::min<std::uint64_t>(reader->number(), 1ull << 50);
      r.pairs.push_back({bytes, std::min<std::uint64_t>(reader->number(), 1ull << 40)});
    }
    rates.push_back(std::move(r));
  }
  return rates;
}

}  // namespace riffle
