#include "plugin/collective/connect/probe_messages.h"

#include <algorithm>

#include "plugin/transport/base/wire.h"

namespace riffle {
namespace {

constexpr std::size_t kOrderHead = 16, kFlowBytes = 8;  // number, duration, bytes, kind; from, to
constexpr std::size_t kReportHead = 8,
                      kEntryBytes =
                          48;  // number, busy; flow, kbps, rtt, bytes, steady, hops + 1, together
constexpr std::int64_t kMostKbps = 100'000'000'000;  // 100 Tbit/s: more than any link has
constexpr std::uint32_t kMostHops = 255;
constexpr std::uint32_t kMostDurationUs = 10'000'000;

void put_flow(std::uint8_t* at, const probe::Flow& f) {
  put(at, static_cast<std::uint32_t>(f.from));
  put(at + 4, static_cast<std::uint32_t>(f.to));
}

bool get_flow(const std::uint8_t* at, int nodes, probe::Flow* f) {
  const auto from = get<std::uint32_t>(at), to = get<std::uint32_t>(at + 4);
  if (from >= static_cast<std::uint32_t>(nodes) || to >= static_cast<std::uint32_t>(nodes) ||
      from == to) {
    return false;
  }
  *f = {static_cast<int>(from), static_cast<int>(to)};
  return true;
}

Status mangled_probe(const char* what) {
  return remote_error(std::string("probing: mangled ") + what + " message");
}

}  // namespace

std::vector<std::uint8_t> encode(const ProbeOrder& order) {
  std::vector<std::uint8_t> bytes(kOrderHead + kFlowBytes * order.flows.size());
  put(&bytes[0], order.number);
  put(&bytes[4], order.duration_us);
  put(&bytes[8], order.most_bytes);
  put(&bytes[12], static_cast<std::uint32_t>(order.kind));
  std::uint8_t* at = bytes.data() + kOrderHead;
  for (const probe::Flow& f : order.flows) {
    put_flow(at, f);
    at += kFlowBytes;
  }
  return bytes;
}

Result<ProbeOrder> decode_probe_order(const std::vector<std::uint8_t>& bytes, int nodes) {
  if (bytes.size() < kOrderHead || (bytes.size() - kOrderHead) % kFlowBytes != 0) {
    return mangled_probe("order");
  }
  ProbeOrder order;
  order.number = get<std::uint32_t>(&bytes[0]);
  order.duration_us = get<std::uint32_t>(&bytes[4]);
  order.most_bytes = get<std::uint32_t>(&bytes[8]);
  const auto kind = get<std::uint32_t>(&bytes[12]);
  order.kind = static_cast<ProbeOrder::Kind>(kind);
  if (kind > static_cast<std::uint32_t>(ProbeOrder::Kind::kRound)) return mangled_probe("order");
  if (order.duration_us > kMostDurationUs) return mangled_probe("order");
  order.flows.resize((bytes.size() - kOrderHead) / kFlowBytes);
  const std::uint8_t* at = bytes.data() + kOrderHead;
  for (probe::Flow& f : order.flows) {
    if (!get_flow(at, nodes, &f)) return mangled_probe("order");
    at += kFlowBytes;
  }
  return order;
}

std::vector<std::uint8_t> encode(const ProbeReport& report) {
  std::vector<std::uint8_t> bytes(kReportHead + kEntryBytes * report.entries.size());
  put(&bytes[0], report.number);
  put(&bytes[4], std::uint32_t{report.is_busy});
  std::uint8_t* at = bytes.data() + kReportHead;
  for (const ProbeReport::Entry& e : report.entries) {
    put_flow(at, e.flow);
    put(at + 8, static_cast<std::uint64_t>(e.sample.kbps));
    put(at + 16, static_cast<std::uint64_t>(e.sample.rtt_us));
    put(at + 24, e.bytes);
    put(at + 32, std::uint32_t{e.sample.is_steady});
    put(at + 36, static_cast<std::uint32_t>(e.sample.hops + 1));
    put(at + 40, static_cast<std::uint64_t>(e.sample.together_kbps));
    at += kEntryBytes;
  }
  return bytes;
}

Result<ProbeReport> decode_probe_report(const std::vector<std::uint8_t>& bytes, int nodes) {
  if (bytes.size() < kReportHead || (bytes.size() - kReportHead) % kEntryBytes != 0) {
    return mangled_probe("report");
  }
  ProbeReport report;
  report.number = get<std::uint32_t>(&bytes[0]);
  const auto busy = get<std::uint32_t>(&bytes[4]);
  if (busy > 1) return mangled_probe("report");
  report.is_busy = busy == 1;
  report.entries.resize((bytes.size() - kReportHead) / kEntryBytes);
  const std::uint8_t* at = bytes.data() + kReportHead;
  for (ProbeReport::Entry& e : report.entries) {
    const auto kbps = get<std::uint64_t>(at + 8), rtt_us = get<std::uint64_t>(at + 16),
               together_kbps = get<std::uint64_t>(at + 40);
    const auto steady = get<std::uint32_t>(at + 32), hops_known = get<std::uint32_t>(at + 36);
    if (!get_flow(at, nodes, &e.flow) || kbps > kMostKbps || together_kbps > kMostKbps ||
        rtt_us > kMostDurationUs || steady > 1 || hops_known > kMostHops + 1) {
      return mangled_probe("report");
    }
    e.sample = {static_cast<std::int64_t>(kbps), static_cast<std::int64_t>(together_kbps),
                steady == 1, static_cast<std::int64_t>(rtt_us), static_cast<int>(hops_known) - 1};
    e.bytes = get<std::uint64_t>(at + 24);
    at += kEntryBytes;
  }
  return report;
}

}  // namespace riffle
