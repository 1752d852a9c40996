#include "bench/sparse/sparse_peer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <map>
#include <optional>
#include <sstream>

#include "bench/harness/control.h"
#include "bench/sparse/gradients.h"
#include "bench/sparse/mesh_run.h"
#include "lab/nccl_host/launcher.h"
#include "plugin/transport/base/mesh.h"

namespace riffle::bench {
namespace {

constexpr int kDayMs = 24 * 3600 * 1000;  // the bench has its own deadlines

double weight_of(std::size_t i) { return static_cast<double>((i * 2654435761U >> 16) & 255) / 255; }

double weighted_sum(std::span<const float> x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * weight_of(i);
  return sum;
}

std::uint64_t digest_of(std::span<const float> x) {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    if (bits != 0) digest = (digest ^ bits ^ i << 32) * 0x9e3779b97f4a7c15;
  }
  return digest;
}

// One worker's data and schemes.
class Desk {
 public:
  Desk(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  Status open(std::istringstream& in) {
    std::string file;
    in >> shape_.elements >> shape_.density >> file;
    if (!in) return internal_error("unknown order: " + in.str());
    shape_.workers = ranks_;
    chunks_.clear();
    chosen_ = nullptr;
    gradients_.reset();
    auto gradients = Gradients::open(file == "-" ? "" : file, ranks_, shape_.elements);
    if (!gradients) return gradients.status();
    gradients_.emplace(std::move(*gradients));
    step_ = -1;
    for (auto* buffer : {&gradient_, &result_, &undelivered_}) {
      buffer->assign(shape_.elements, 0.0F);
    }
    return Status::ok();
  }

  Status select(std::istringstream& in, MeshRun& mesh) {
    std::int64_t step = 0;
    std::string name, order;
    in >> step >> name >> shape_.teams >> shape_.is_recursive >> order;
    if (!in || !gradients_) return internal_error("unknown order: " + in.str());
    if (step != step_) gradients_->fill(static_cast<std::uint64_t>(step), rank_, gradient_);
    step_ = step;
    if (chunks_.count(name) == 0) {
      shape_.order.clear();
      std::istringstream positions(order);  // "RANK,RANK,...,-"
      for (std::string rank; std::getline(positions, rank, ',') && rank != "-";) {
        shape_.order.push_back(std::atoi(rank.c_str()));
      }
      if (Status s = make(name); !s) return s;
    }
    chosen_ = &chunks_[name];
    std::vector<MeshRun::Call> calls;
    for (Chunk& chunk : *chosen_) {
      calls.push_back({chunk.scheme.get(), std::span(gradient_).subspan(chunk.begin, chunk.count)});
    }
    mesh.load(calls);
    return Status::ok();
  }

  bool has_scheme() const { return chosen_ != nullptr; }

  Checked check() {
    Checked checked;
    for (Chunk& chunk : *chosen_) {
      Scheme& scheme = *chunk.scheme;
      scheme.write_result(std::span(result_).subspan(chunk.begin, chunk.count));
      scheme.write_undelivered(std::span(undelivered_).subspan(chunk.begin, chunk.count));
      checked.result_entries += scheme.result_entries();
      checked.sent.messages += scheme.sent().messages;
      checked.sent.entries += scheme.sent().entries;
      checked.sent.bytes += scheme.sent().bytes;
      const Formula formula = scheme.formula();
      checked.formula.messages += formula.messages;
      checked.formula.least_entries += formula.least_entries;
      checked.formula.most_entries += formula.most_entries;
      checked.reselect_us += scheme.reselect_us();
    }
    checked.digest = digest_of(result_);
    checked.given = weighted_sum(gradient_);
    checked.undelivered = weighted_sum(undelivered_);
    checked.result = weighted_sum(result_);
    for (const float x : result_) checked.magnitude += std::fabs(static_cast<double>(x));
    return checked;
  }

 private:
  struct Chunk {
    std::size_t begin, count;
    std::unique_ptr<Scheme> scheme;
  };

  Status make(const std::string& text) {
    const auto name = parse_scheme(text);
    if (!name) return name.status();
    std::vector<Chunk> chunks;
    const std::uint64_t most =
        name->chunk_bytes > 0 ? name->chunk_bytes / sizeof(float) : shape_.elements;
    for (std::uint64_t begin = 0; begin < shape_.elements; begin += most) {
      SchemeShape shape = shape_;
      shape.elements = std::min(most, shape_.elements - begin);
      auto scheme = make_scheme(name->name, shape, rank_);
      if (!scheme) return scheme.status();
      chunks.push_back({begin, shape.elements, std::move(*scheme)});
    }
    chunks_[text] = std::move(chunks);
    return Status::ok();
  }

  int rank_, ranks_;
  SchemeShape shape_;
  std::optional<Gradients> gradients_;
  std::int64_t step_ = -1;
  std::vector<float> gradient_, result_, undelivered_;
  std::map<std::string, std::vector<Chunk>> chunks_;  // by scheme
  std::vector<Chunk>* chosen_ = nullptr;              // of the scheme selected last
};

Result<std::string> answer(const std::string& order, Desk& desk, MeshRun& mesh) {
  std::istringstream in(order);
  std::string word;
  in >> word;
  if (word == "input" || word == "select") {
    const Status status = word == "input" ? desk.open(in) : desk.select(in, mesh);
    if (!status) return status;
    return std::string("ready");
  }
  if (!desk.has_scheme()) return internal_error("unknown order: " + order);
  if (word == "check") return to_text(desk.check());
  if (word != "go" && word != "replay") return internal_error("unknown order: " + order);
  const auto times = word == "go" ? mesh.run() : mesh.replay();
  if (!times) return times.status();
  std::ostringstream done;
  done << "done " << times->start_ns << ' ' << times->end_ns << ' ' << times->compute_us;
  return done.str();
}

Status work(host::Bootstrap& bootstrap, const Site& site) {
  auto mesh = MeshRun::connect(bootstrap);
  if (!mesh) return mesh.status();
  auto line = ControlLine::connect(site.control, bootstrap.rank());
  if (!line) return line.status();
  Desk desk(bootstrap.rank(), bootstrap.size());
  while (true) {
    const std::string order = line->hear();
    if (order.empty() || order == "quit") return Status::ok();
    const auto text = answer(order, desk, **mesh);
    if (Status s = line->tell(text ? *text : "error " + text.status().message()); !s) return s;
    if (!text) return text.status();
  }
}

}  // namespace

std::string to_text(const Checked& c) {
  std::ostringstream out;
  out << std::setprecision(17) << "checked " << c.digest << ' ' << c.result_entries << ' '
      << c.given << ' ' << c.undelivered << ' ' << c.result << ' ' << c.magnitude << ' '
      << c.sent.messages << ' ' << c.sent.entries << ' ' << c.sent.bytes << ' '
      << c.formula.messages << ' ' << c.formula.least_entries << ' ' << c.formula.most_entries
      << ' ' << c.reselect_us;
  return out.str();
}

Result<Checked> checked_from(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  Checked c;
  in >> word >> c.digest >> c.result_entries >> c.given >> c.undelivered >> c.result >>
      c.magnitude >> c.sent.messages >> c.sent.entries >> c.sent.bytes >> c.formula.messages >>
      c.formula.least_entries >> c.formula.most_entries >> c.reselect_us;
  if (word != "checked" || !in) return internal_error("unexpected answer: " + text);
  return c;
}

Peer sparse_peer() {
  Peer peer;
  peer.name = peer.title = "sparse";
  peer.supervise = [](const Site& site) {
    if (!site.cluster) setenv("RIFFLE_SOCKET_IFNAME", "=lo", 0);
    host::LaunchOptions options;
    options.ranks = site.ranks;
    options.deadline_ms = kDayMs;
    options.before = [&site](int rank) { return site.enter(rank); };
    const auto exits =
        host::launch(options, [&](host::Bootstrap& bootstrap) { return work(bootstrap, site); });
    return host::all_succeeded(exits) ? 0 : 1;
  };
  return peer;
}

}  // namespace riffle::bench
