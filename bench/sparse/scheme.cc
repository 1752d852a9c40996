#include "bench/sparse/scheme.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "bench/sparse/planned_scheme.h"
#include "sparse/layout.h"

namespace riffle::bench {
namespace {

constexpr std::uint64_t kLeastChunkBytes = 1 << 10, kMostChunkBytes = 1 << 30;

}  // namespace

std::uint64_t SchemeShape::kept() const {
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::llround(density * static_cast<double>(elements))));
}

const std::vector<std::string>& scheme_names() {
  static const std::vector<std::string> names = {"spardl", "spardl-reuse", "spardl-teams",
                                                 "topka",  "topkdsa",      "gtopk",
                                                 "oktopk", "ring",         "ring-bf16"};
  return names;
}

bool has_teams(const std::string& name) { return name == "spardl-teams" || name == "spardl-reuse"; }

Result<SchemeName> parse_scheme(const std::string& text) {
  const std::size_t slash = text.find('/');
  SchemeName out{text.substr(0, slash), 0};
  if (std::ranges::find(scheme_names(), out.name) == scheme_names().end()) {
    std::string known;
    for (const std::string& n : scheme_names()) known += (known.empty() ? "" : ", ") + n;
    return invalid_argument("no sparse scheme \"" + out.name + "\"; there are " + known);
  }
  if (slash == std::string::npos) return out;
  const std::string size = text.substr(slash + 1);
  std::uint64_t number = 0;
  const char* end = size.data() + size.size();
  const auto read = std::from_chars(size.data(), end, number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit.empty() ? 0 : -1;
  if (read.ec != std::errc() || shift < 0 || number > kMostChunkBytes ||
      number << shift < kLeastChunkBytes || number << shift > kMostChunkBytes ||
      (number << shift) % sizeof(float) != 0) {
    return invalid_argument("sparse scheme \"" + text +
                            "\": a chunk has 1K to 1024M bytes, in whole floats");
  }
  out.chunk_bytes = number << shift;
  return out;
}

Result<std::unique_ptr<Scheme>> make_scheme(const std::string& name, const SchemeShape& shape,
                                            int rank) {
  if (const auto known = parse_scheme(name); !known) return known.status();
  SchemeShape with_teams = shape;
  if (!has_teams(name)) {
    with_teams.teams = 1;
    with_teams.order.clear();
  }
  const Status valid =
      sparse::validate({shape.workers, with_teams.teams, shape.elements, shape.density});
  if (!valid) return valid;
  if (shape.workers < 2 || shape.elements < static_cast<std::uint64_t>(shape.workers)) {
    return invalid_argument("a sparse scheme needs 2 workers or more and an element for each");
  }
  if (name == "topka") return make_topka(shape, rank);
  if (name == "topkdsa") return make_topkdsa(shape, rank);
  if (name == "gtopk") return make_gtopk(shape, rank);
  if (name == "oktopk") return make_oktopk(shape, rank);
  if (name == "ring" || name == "ring-bf16") return make_ring(shape, rank, name == "ring-bf16");
  return make_spardl(with_teams, rank, name == "spardl-reuse");
}

}  // namespace riffle::bench
