#include "sparse/cuda/selector.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sparse/layout.h"
#include "topology/base/check.h"

namespace riffle::sparse::cuda {
namespace {

constexpr std::size_t kSmall = 4096;  // up to here every non-zero element is a candidate

unsigned tiles_of(std::size_t count) { return static_cast<unsigned>((count + kTile - 1) / kTile); }

Status wrong(const char* what, std::size_t is, const std::string& accepted) {
  return invalid_argument(std::string("selection on a GPU: ") + what + " is " + std::to_string(is) +
                          ", accepted: " + accepted);
}

Status check(const Input& input, const Output& output) {
  if (input.count > kMostElements) {
    return wrong("the number of elements", input.count, "up to " + std::to_string(kMostElements));
  }
  if (output.has_short_indices && input.count > kShortIndexElements) {
    return wrong("the number of elements with 2-byte indices", input.count,
                 "up to " + std::to_string(kShortIndexElements));
  }
  if ((input.residual == nullptr) != (input.sum == nullptr)) {
    return invalid_argument("selection on a GPU: a residual and a sum belong together");
  }
  return Status::ok();
}

}  // namespace

Selector::Selector(Device& device)
    : device_(device),
      state_(device),
      mask_(device),
      tiles_(device),
      histogram_(device),
      candidate_indices_(device),
      candidate_values_(device) {}

Status Selector::prepare(const Input& input, const Output& output, std::size_t candidates) {
  RIFFLE_CHECK(!is_under_way_, "a selection is under way");
  if (Status s = check(input, output); !s) return s;
  const std::size_t tiles = tiles_of(input.count);
  if (Status s = state_.make_room(sizeof(SelectState)); !s) return s;
  if (Status s = mask_.make_room(tiles * kTile / 8); !s) return s;
  if (Status s = tiles_.make_room(tiles * sizeof(Pair)); !s) return s;
  if (Status s = histogram_.make_room(kBins * sizeof(unsigned)); !s) return s;
  if (Status s = candidate_indices_.make_room(candidates * sizeof(unsigned)); !s) return s;
  if (Status s = candidate_values_.make_room(candidates * sizeof(float)); !s) return s;
  SelectArguments& a = arguments_;
  a = {};
  a.gradient = input.gradient;
  a.residual = input.residual;
  a.sum = input.sum;
  a.element = static_cast<unsigned>(input.element);
  a.count = static_cast<unsigned>(input.count);
  a.state = state_.as<SelectState>();
  a.mask = mask_.as<unsigned>();
  a.tiles = tiles_.as<Pair>();
  a.histogram = histogram_.as<unsigned>();
  a.candidate_indices = candidate_indices_.as<unsigned>();
  a.candidate_values = candidate_values_.as<float>();
  a.candidate_capacity = static_cast<unsigned>(candidates);
  a.indices = output.indices;
  a.values = output.values;
  a.capacity = static_cast<unsigned>(std::min(output.capacity, kMostElements));
  a.has_short_indices = output.has_short_indices ? 1 : 0;
  return Status::ok();
}

Status Selector::launch(Kernel kernel, unsigned blocks) {
  return device_.launch(kernel, blocks, &arguments_);
}

Status Selector::mark_scan_emit() {
  const unsigned tiles = tiles_of(arguments_.count);
  if (Status s = launch(Kernel::kMark, tiles); !s) return s;
  if (Status s = launch(Kernel::kScan, 1); !s) return s;
  return launch(Kernel::kEmit, tiles);
}

Status Selector::top_k(const Input& input, std::size_t k, const Output& output) {
  k = std::min(k, input.count);
  if (k == 0) return at_least(input, kNonFiniteMagnitude, output);
  const std::size_t candidates = std::min(input.count, 4 * k + kSmall);
  if (Status s = prepare(input, output, candidates); !s) return s;
  SelectArguments& a = arguments_;
  a.k = static_cast<unsigned>(k);
  if (input.count > kSmall) {  // the rank lies three standard deviations above the expected
    const std::size_t lines = std::clamp<std::size_t>(input.count / 16 / kLine, 32, 1024);
    const double expected = static_cast<double>(lines * kLine) * static_cast<double>(k) /
                            static_cast<double>(input.count);
    a.lines = static_cast<unsigned>(lines);
    a.stride = static_cast<unsigned>(input.count / lines);
    a.rank = static_cast<unsigned>(expected + 3 * std::sqrt(expected) + 4);
  }
  is_under_way_ = true;
  if (Status s = launch(Kernel::kSample, 1); !s) return s;
  if (Status s = mark_scan_emit(); !s) return s;
  a.from_chosen = 1;
  const unsigned blocks = std::min(tiles_of(input.count), 8 * device_.multiprocessors());
  for (a.step = 0; a.step < kSteps; ++a.step) {
    if (Status s = launch(Kernel::kHistogram, blocks); !s) return s;
    if (Status s = launch(Kernel::kPick, 1); !s) return s;
  }
  a.to_result = 1;
  return mark_scan_emit();
}

Status Selector::at_least(const Input& input, std::uint32_t magnitude, const Output& output) {
  if (magnitude < kLeastMagnitude || magnitude > kMagnitudeMask) {
    return wrong("the magnitude", magnitude, "1 to " + std::to_string(kMagnitudeMask));
  }
  if (Status s = prepare(input, output, 0); !s) return s;
  is_under_way_ = true;
  if (input.count == 0) return Status::ok();
  arguments_.least = magnitude;
  arguments_.to_result = 1;
  if (Status s = launch(Kernel::kSample, 1); !s) return s;
  return mark_scan_emit();
}

Result<std::size_t> Selector::finish() {
  RIFFLE_CHECK(is_under_way_, "no selection is under way");
  is_under_way_ = false;
  SelectState state{};
  if (arguments_.count > 0) {
    if (Status s = device_.copy_out(&state, arguments_.state, sizeof state); !s) return s;
  }
  if (state.kept > arguments_.capacity) {
    return wrong("the room for entries", arguments_.capacity,
                 std::to_string(state.kept) + ", so many there are");
  }
  return std::size_t{state.kept};
}

}  // namespace riffle::sparse::cuda
