#include "sparse/layout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "topology/base/check.h"

namespace riffle::sparse {
namespace {

std::string out_of_range(const char* what, const std::string& value, const std::string& accepted) {
  return std::string("sparse layout: ") + what + " is " + value + ", accepted: " + accepted;
}

}  // namespace

Status validate(const Shape& shape) {
  if (shape.workers < 1 || shape.workers > kMaxWorkers) {
    return invalid_argument(out_of_range("workers", std::to_string(shape.workers),
                                         "1 to " + std::to_string(kMaxWorkers)));
  }
  if (shape.teams < 1 || shape.workers % shape.teams != 0) {
    return invalid_argument(
        out_of_range("teams", std::to_string(shape.teams),
                     "what divides the " + std::to_string(shape.workers) + " workers"));
  }
  if (shape.elements > kMaxElements) {
    return invalid_argument(out_of_range("elements", std::to_string(shape.elements),
                                         "up to " + std::to_string(kMaxElements)));
  }
  if (!(shape.density > 0 && shape.density <= 1)) {
    return invalid_argument(
        out_of_range("density", std::to_string(shape.density), "above 0, up to 1"));
  }
  return Status::ok();
}

Layout::Layout(const Shape& shape) : shape_(shape) {
  const Status valid = validate(shape);
  RIFFLE_CHECK(valid.is_ok(), valid.message());
}

std::uint64_t Layout::begin_of(int block) const {
  return static_cast<std::uint64_t>(block) * shape_.elements /
         static_cast<std::uint64_t>(team_size());
}

std::uint64_t Layout::budget_of(int block) const {
  const std::uint64_t size = size_of(block);
  if (size == 0) return 0;
  const double wanted = std::round(static_cast<double>(size) * shape_.density);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, size);
}

std::uint64_t Layout::budget() const {
  std::uint64_t sum = 0;
  for (int block = 0; block < team_size(); ++block) sum += budget_of(block);
  return sum;
}

}  // namespace riffle::sparse
