// FabricView: a fabric in the form that planning needs: racks that hold nodes only, uplinks capped
// by what the nodes behind them can carry, one rate per node for families that load both directions
// alike.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle {

struct RackView {
  int id = 0;                // index in fabric.racks, for messages
  std::vector<int> members;  // ranks in rising order, at least one
  double out_kbps = 0;       // sum over its nodes
  double in_kbps = 0;
  double up_kbps = 0;    // capped at out_kbps; equal to it when the file sets no limit
  double down_kbps = 0;  // capped at in_kbps
};

class FabricView {
 public:
  // The fabric must be valid and outlive the view.
  explicit FabricView(const Fabric& fabric);

  const Fabric& fabric() const { return *fabric_; }
  int size() const { return fabric_->size(); }
  const std::vector<RackView>& racks() const { return racks_; }
  int rack_of(int node) const { return rack_of_[node]; }  // index in racks()
  const std::vector<int>& rack_of() const { return rack_of_; }
  double rate_kbps(int node) const;  // the slower of both directions

 private:
  const Fabric* fabric_;
  std::vector<RackView> racks_;
  std::vector<int> rack_of_;
};

}  // namespace riffle
