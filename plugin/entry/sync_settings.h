// The mode that RIFFLE_SYNC or RIFFLE_SPARSE asks for, if the other knobs allow it.
#pragma once

#include <string>

#include "plugin/collective/base/sync_mode.h"
#include "plugin/config/config.h"

namespace riffle {

SyncSettings sync_settings(const Config& config);

// Of RIFFLE_SPARSE: off, a density, auto:a density.
struct SparseWish {
  bool is_on = false, is_auto = false;
  double density = 0;
  std::string wrong;  // not empty: what is wrong with it
};
SparseWish sparse_wish(const std::string& text);

// RIFFLE_COLLNET_MIN_BYTES; where it is -1, the size below which padding costs more than it gains.
std::size_t collnet_min_bytes(const Config& config);

}  // namespace riffle
