#include "bench/sparse/scheme.h"

#include <algorithm>
#include <cmath>

#include "bench/sparse/planned_scheme.h"
#include "sparse/layout.h"

namespace riffle::bench {

std::uint64_t SchemeShape::kept() const {
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::llround(density * static_cast<double>(elements))));
}

const std::vector<std::string>& scheme_names() {
  static const std::vector<std::string> names = {"spardl", "spardl-teams", "topka", "topkdsa",
                                                 "gtopk",  "oktopk",       "ring",  "ring-bf16"};
  return names;
}

Result<std::unique_ptr<Scheme>> make_scheme(const std::string& name, const SchemeShape& shape,
                                            int rank) {
  if (std::ranges::find(scheme_names(), name) == scheme_names().end()) {
    std::string known;
    for (const std::string& n : scheme_names()) known += (known.empty() ? "" : ", ") + n;
    return invalid_argument("no sparse scheme \"" + name + "\"; there are " + known);
  }
  SchemeShape with_teams = shape;
  if (name != "spardl-teams") {
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
  return make_spardl(with_teams, rank);
}

}  // namespace riffle::bench
