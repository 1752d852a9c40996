#include "plugin/collective/messages.h"

#include <cstring>

namespace riffle {
namespace {

class Writer {
 public:
  void number(std::uint64_t v) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  void texts(const std::vector<std::string>& list) {
    number(list.size());
    for (const std::string& t : list) blob(t);
  }
  template <class Bytes>
  void blob(const Bytes& b) {
    number(b.size());
    bytes_.insert(bytes_.end(), b.begin(), b.end());
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads what Writer wrote; after the first impossible length everything is empty and ok() is false.
class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    if (bytes_.size() - at_ < 8) return fail();
    std::uint64_t v = 0;
    for (int i = 0; i < 8; ++i) v |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += 8;
    return v;
  }
  template <class Bytes>
  Bytes blob() {
    const std::uint64_t size = number();
    if (size > bytes_.size() - at_) {
      fail();
      return {};
    }
    Bytes b(bytes_.begin() + static_cast<std::ptrdiff_t>(at_),
            bytes_.begin() + static_cast<std::ptrdiff_t>(at_ + size));
    at_ += size;
    return b;
  }
  std::string text() { return blob<std::string>(); }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (std::uint64_t n = number(); n > 0 && is_ok(); --n) list.push_back(text());
    return list;
  }
  bool is_ok() const { return ok_; }
  bool is_complete() const { return ok_ && at_ == bytes_.size(); }

 private:
  std::uint64_t fail() {
    ok_ = false;
    at_ = bytes_.size();
    return 0;
  }
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

Status mangled(const char* what) {
  return remote_error(std::string("connect: mangled ") + what + " message");
}

}  // namespace

std::vector<std::uint8_t> encode(const std::vector<NodeReport>& reports) {
  Writer w;
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
  }
  return w.take();
}

Result<std::vector<NodeReport>> decode_reports(const std::vector<std::uint8_t>& bytes) {
  Reader reader(bytes);
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
    reports.push_back(std::move(r));
  }
  if (!reader.is_complete()) return mangled("report");
  return reports;
}

std::vector<std::uint8_t> encode(const Verdict& v) {
  Writer w;
  w.blob(v.problem);
  w.blob(v.aside);
  w.blob(v.reason);
  w.texts(v.hosts);
  w.blob(v.plans);
  w.number(v.digest);
  w.blob(v.network);
  return w.take();
}

Result<Verdict> decode_verdict(const std::vector<std::uint8_t>& bytes) {
  Reader reader(bytes);
  Verdict v;
  v.problem = reader.text();
  v.aside = reader.text();
  v.reason = reader.text();
  v.hosts = reader.texts();
  v.plans = reader.blob<std::vector<std::uint8_t>>();
  v.digest = reader.number();
  v.network = reader.text();
  if (!reader.is_complete()) return mangled("verdict");
  return v;
}

std::vector<std::uint8_t> encode(const Agreement& a) {
  Writer w;
  w.blob(a.problem);
  return w.take();
}

Result<Agreement> decode_agreement(const std::vector<std::uint8_t>& bytes) {
  Reader reader(bytes);
  Agreement a;
  a.problem = reader.text();
  if (!reader.is_complete()) return mangled("agreement");
  return a;
}

}  // namespace riffle
