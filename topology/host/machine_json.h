// A Machine as JSON text, for tools and for the expected outputs of recorded machines. Keys are
// stable; what is unknown is null or left out. Two spaces of indentation, a line end at the end.
#pragma once

#include <string>

#include "topology/host/machine.h"

namespace riffle {

std::string to_json(const Machine& machine);

}  // namespace riffle
