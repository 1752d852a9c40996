// What a worker keeps between calls for one chunk of one bucket, and what it keeps of a gradient
// that was not delivered.
//
// kGlobal   SparDL's global residual collection: an index that is in the result keeps what this
//           worker dropped of it on the way (contributions of others included); any other index
//           keeps the worker's own original value. Conservation, element by element:
//             sum over workers of residual_new + result = sum over workers of (gradient + residual)
// kPartial  keeps what this worker dropped, wherever, others' contributions included, and nothing
// of
//           what it sent. Conserves too; mass gathers where it was dropped, not where it came from.
// kLocal    keeps what this worker did not send of its own; what it dropped of others' is lost, so
//           this one does not conserve
// kEf21     EF21 with momentum (Fatkhullin et al., arXiv 2305.15155): each worker's momentum v, an
//           exponential average of its gradients, is what is to be known to all; the change of v
//           since it was last delivered is exchanged with kGlobal, and the result is the running
//           sum of what was delivered. Then sum of residuals + result = sum of v.
//
// The result is the sum over the workers, not their mean. A state is changed by Exchange alone, and
// only when a call has succeeded: a call that fails or meets infinities leaves it as it was.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/h_controller.h"
#include "sparse/layout.h"
#include "sparse/select.h"

namespace riffle::sparse {

enum class ResidualPolicy : std::uint8_t { kGlobal = 0, kPartial = 1, kLocal = 2, kEf21 = 3 };

class ChunkState {
 public:
  ChunkState() = default;
  ChunkState(const Layout& layout, int position, ResidualPolicy policy);

  // Everything forgotten, as new. What the residual held is lost: take it along first.
  void reset();

  // Another density (a ramp), other teams or fewer workers, the same elements: residuals belong to
  // elements and stay, what steers selection starts anew. Not for kEf21 when workers are lost: what
  // they had delivered is in the running sum, so all survivors reset().
  void move_to(const Layout& layout, int position);

  std::vector<float> residual;        // one per element
  std::vector<float> momentum;        // kEf21: v of this worker
  std::vector<float> delivered;       // kEf21: the running result, equal on all workers
  bool has_momentum = false;          // kEf21: false until the first call, which sets v = gradient
  std::vector<Threshold> thresholds;  // one per block, when thresholds are reused
  HController offer;                  // of the own block

 private:
  HController offer_as_new_;
};

}  // namespace riffle::sparse
