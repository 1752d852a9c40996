#include "plugin/collective/connect/messages.h"

#include "plugin/collective/base/byte_io.h"

namespace riffle {
namespace {

constexpr std::size_t kMostName = 64;  // bytes of a rack's name or a subnet's

Status mangled(const char* what) {
  return remote_error(std::string("connect: mangled ") + what + " message");
}

}  // namespace

std::vector<std::uint8_t> encode(const std::vector<NodeReport>& reports) {
  ByteWriter w;
  w.number(reports.size());
  for (const NodeReport& r : reports) {
    w.number(static_cast<std::uint64_t>(r.rank));
    w.blob(r.host);
    w.texts(r.aliases);
    w.blob(r.version);
    w.blob(r.knobs);
    w.blob(r.problem);
    w.number(static_cast<std::uint64_t>(r.rate_kbps));
    w.number(r.knows_rate ? 1 : 0);
    w.number(static_cast<std::uint64_t>(r.speed.reduce_mbps));
    w.number(static_cast<std::uint64_t>(r.speed.stack_mbps));
    w.number(static_cast<std::uint64_t>(r.speed.message_ns));
    w.blob(r.share.machine);
    w.number(static_cast<std::uint64_t>(r.share.processors));
    w.blob(r.rack);
    w.blob(r.network);
    w.number(r.knows_lengths ? 1 : 0);
  }
  return w.take();
}

Result<std::vector<NodeReport>> decode_reports(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  std::vector<NodeReport> reports;
  for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
    NodeReport r;
    r.rank = static_cast<std::int32_t>(reader.number());
    r.host = reader.text();
    r.aliases = reader.texts();
    r.version = reader.text();
    r.knobs = reader.text();
    r.problem = reader.text();
    r.rate_kbps = static_cast<std::int64_t>(reader.number());
    r.knows_rate = reader.number() != 0;
    r.speed.reduce_mbps = static_cast<std::int64_t>(reader.number());
    r.speed.stack_mbps = static_cast<std::int64_t>(reader.number());
    r.speed.message_ns = static_cast<std::int64_t>(reader.number());
    r.share.machine = reader.text();
    r.share.processors = static_cast<std::int64_t>(reader.number());
    r.rack = reader.text();
    r.network = reader.text();
    if (r.rack.size() > kMostName || r.network.size() > kMostName) return mangled("report");
    r.knows_lengths = reader.number() != 0;
    reports.push_back(std::move(r));
  }
  if (!reader.is_complete()) return mangled("report");
  return reports;
}

std::vector<std::uint8_t> encode(const Verdict& v) {
  ByteWriter w;
  w.blob(v.problem);
  w.blob(v.fallback_reason);
  w.blob(v.reason);
  w.texts(v.hosts);
  w.blob(v.plans);
  w.number(v.digest);
  w.number(v.knows_lengths ? 1 : 0);
  w.blob(v.network);
  return w.take();
}

Result<Verdict> decode_verdict(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  Verdict v;
  v.problem = reader.text();
  v.fallback_reason = reader.text();
  v.reason = reader.text();
  v.hosts = reader.texts();
  v.plans = reader.blob<std::vector<std::uint8_t>>();
  v.digest = reader.number();
  v.knows_lengths = reader.number() != 0;
  v.network = reader.text();
  if (!reader.is_complete()) return mangled("verdict");
  return v;
}

std::vector<std::uint8_t> encode(const Agreement& a) {
  ByteWriter w;
  w.blob(a.problem);
  return w.take();
}

Result<Agreement> decode_agreement(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  Agreement a;
  a.problem = reader.text();
  if (!reader.is_complete()) return mangled("agreement");
  return a;
}

}  // namespace riffle
