#include "plugin/collective/sparse/sparse_run.h"

#include <algorithm>
#include <bit>
#include <string>

#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/types.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLeastElements = 1024;  // of a call: below, its messages are all latency
constexpr std::size_t kMostSegments = 64;       // of a call: NCCL has eight under way, of 512

// What an exchange keeps besides its copy of the elements: about eight times the entries that it
// selects, as candidates, messages, sums and what is left.
std::size_t exchange_bytes(std::uint64_t elements, double density, bool is_ef21) {
  constexpr double kBytesPerSelected = 64;
  return elements * sizeof(float) * (is_ef21 ? 2 : 1) +
         static_cast<std::size_t>(kBytesPerSelected * density * static_cast<double>(elements));
}

Status check(const SparseOrder& order, std::size_t pieces, int size) {
  const auto n = static_cast<std::uint64_t>(size);
  if (order.is_sparse.size() != pieces || order.node_at.size() != n) {
    return remote_error("the order of the sparse mode is for other calls or nodes");
  }
  if (order.teams == 0 || n % order.teams != 0) {
    return remote_error(std::to_string(order.teams) + " teams of " + std::to_string(size) +
                        " nodes");
  }
  if (order.is_recursive && !std::has_single_bit(order.teams)) {
    return remote_error("recursive exchange among " + std::to_string(order.teams) + " teams");
  }
  std::vector<std::uint64_t> nodes = order.node_at;
  std::ranges::sort(nodes);
  for (std::uint64_t i = 0; i < n; ++i) {
    if (nodes[i] != i) return remote_error("the order of the sparse mode does not place all nodes");
  }
  return Status::ok();
}

}  // namespace

bool SparseRun::is_eligible(const Layout::Piece& piece, std::uint64_t min_bytes,
                            std::uint64_t chunk_elements) {
  const auto type = static_cast<DataType>(piece.type);
  return rules::supports(type) && piece.op == static_cast<int>(ReduceOp::kSum) &&
         piece.total * size_of(type) >= min_bytes && piece.valid >= kLeastElements &&
         piece.count - piece.valid <= chunk_elements;
}

std::uint64_t SparseRun::segment_elements(const Layout::Piece& piece,
                                          std::uint64_t chunk_elements) {
  constexpr std::uint64_t kGrain = 16;  // a cache line of float32
  const std::uint64_t segments = (piece.valid + chunk_elements - 1) / chunk_elements;
  const std::uint64_t even = (piece.valid + segments - 1) / segments;
  return std::min((even + kGrain - 1) / kGrain * kGrain, chunk_elements);
}

Result<std::unique_ptr<SparseRun>> SparseRun::make(const SparseOrder& order,
                                                   const std::vector<Layout::Piece>& pieces,
                                                   const SyncSettings& settings, int rank, int size,
                                                   std::uint64_t chunk_elements) {
  if (Status s = check(order, pieces.size(), size); !s) return s;
  std::unique_ptr<SparseRun> run(new SparseRun);
  run->settings_ = settings.sparse;
  for (const std::uint64_t node : order.node_at) {
    run->places_.node_at.push_back(static_cast<int>(node));
  }
  run->places_.own = static_cast<int>(std::ranges::find(run->places_.node_at, rank) -
                                      run->places_.node_at.begin());
  const bool is_ef21 = settings.sparse.residual == sparse::ResidualPolicy::kEf21;
  // After a loss EF21's state is given up, and so does not have to come back.
  const bool keeps_before = settings.survives_losses && !is_ef21;

  // What there is, and what it takes.
  struct Cut {
    std::uint64_t first, elements, whole;
  };
  std::vector<Cut> cuts;
  std::map<std::uint64_t, std::uint64_t> alike;  // segments by elements
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Layout::Piece& piece = pieces[i];
    Position p{cuts.size(), 0};
    if (order.is_sparse[i] != 0 && is_eligible(piece, settings.min_bytes, chunk_elements)) {
      const std::uint64_t segment = segment_elements(piece, chunk_elements);
      for (std::uint64_t at = 0; at < piece.valid; at += segment, ++p.count) {
        const std::uint64_t elements = std::min(segment, piece.valid - at);
        const bool is_last = at + elements == piece.valid;
        cuts.push_back({at, elements, is_last ? piece.count - at : elements});
        ++alike[elements];
        run->bytes_ += elements * sizeof(float) * (is_ef21 ? 3 : keeps_before ? 2 : 1);
      }
      if (p.count > kMostSegments) {
        return invalid_argument("a call of " + std::to_string(piece.valid) + " elements needs " +
                                std::to_string(p.count) + " chunks, accepted at most " +
                                std::to_string(kMostSegments) + ": raise RIFFLE_CHUNK_BYTES");
      }
    }
    run->positions_.push_back(p);
  }
  if (cuts.empty()) return invalid_argument("no call of the job belongs to a large sum of floats");
  for (auto& [elements, count] : alike) {
    count = std::min(count, SparseRunner::kWindow);
    run->bytes_ += count * exchange_bytes(elements, settings.sparse.density, is_ef21);
  }
  if (run->bytes_ > settings.state_limit_bytes) {
    const auto mib = [](std::uint64_t bytes) {
      return std::to_string((bytes + (1 << 20) - 1) >> 20);
    };
    return invalid_argument("it needs " + mib(run->bytes_) + " MiB, RIFFLE_STATE_LIMIT_MB allows " +
                            mib(settings.state_limit_bytes));
  }

  sparse::ExchangeOptions options;
  options.across = order.is_recursive ? sparse::Across::kRecursive : sparse::Across::kGathered;
  options.selection = sparse::Selection::kReuse;
  options.residual = settings.sparse.residual;
  const auto layout_of = [&](std::uint64_t elements) {
    return sparse::Layout({size, static_cast<int>(order.teams), elements, settings.sparse.density});
  };
  for (const auto& [elements, count] : alike) {
    SparsePool& pool = run->pools_[elements];
    pool.options = options;
    for (std::uint64_t i = 0; i < count; ++i) {
      pool.free.push_back(
          std::make_unique<sparse::Exchange>(layout_of(elements), options, run->places_.own));
    }
  }
  run->count_ = cuts.size();
  run->segments_ = std::make_unique<SparseSegment[]>(cuts.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    SparseSegment& s = run->segments_[i];
    s.operation.sparse = &s;
    s.first = cuts[i].first;
    s.elements = cuts[i].elements;
    s.whole = cuts[i].whole;
    s.places = &run->places_;
    s.pool = &run->pools_.at(s.elements);
    s.teams = static_cast<int>(order.teams);
    s.state = sparse::ChunkState(layout_of(s.elements), run->places_.own, options.residual);
    s.state_density = settings.sparse.density;
    if (keeps_before) {
      s.before = std::make_unique<SparseSegment::Before>();
      s.remember();  // from now on its memory is there
    }
  }
  return run;
}

std::span<SparseSegment> SparseRun::segments(std::size_t position) {
  const Position& p = positions_[position];
  return {segments_.get() + p.first, p.count};
}

bool SparseRun::holds_residual(std::size_t position) {
  return std::ranges::any_of(segments(position), &SparseSegment::holds_residual);
}

bool SparseRun::holds_residual() {
  return std::any_of(segments_.get(), segments_.get() + count_,
                     [](const SparseSegment& s) { return s.holds_residual; });
}

}  // namespace riffle
