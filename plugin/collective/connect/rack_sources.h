// Node 0: what is known of the racks before the network is measured: a topology file, names that
// the nodes were given (RIFFLE_RACK), their subnets.
#pragma once

#include <optional>
#include <vector>

#include "plugin/collective/connect/connect_options.h"
#include "plugin/collective/connect/messages.h"
#include "topology/fabric/racks_file.h"
#include "topology/probe/rack_search.h"

namespace riffle {

// The racks that count where nothing is measured: those of a topology file (RIFFLE_TOPOLOGY, or the
// Slurm job's), else as named; none where a fabric file is given. `known` gets what probing is
// told: a file's racks, beyond doubt, or else hints. Warns of a file that cannot be used, of names
// that some nodes lack, and of names that contradict the file.
std::optional<Racks> look_up_racks(const ConnectOptions& options,
                                   const std::vector<NodeReport>& reports,
                                   probe::KnownRacks* known);

// One log line for each hint that the racks found contradict.
void log_overruled(const probe::Racks& found, const std::vector<NodeReport>& reports);

}  // namespace riffle
