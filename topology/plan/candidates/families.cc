#include "topology/plan/candidate.h"

namespace riffle {

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"direct", propose_direct},
      {"ring", propose_ring},
      {"racks", propose_racks},
      {"grid", propose_grid},
      {"halving-doubling", propose_halving_doubling},
      {"tree", propose_tree},
      {"double-tree", propose_double_tree},
  };
  return all;
}

}  // namespace riffle
