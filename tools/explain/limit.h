// Which link limits: from what went over the links and, where they are known, their rates.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle::tools {

struct Resource;

struct Traffic {
  struct Link {
    std::uint64_t bytes = 0;
    double busy_us = -1;  // data was waiting in the sender's kernel; -1: not recorded
  };
  std::map<std::pair<int, int>, Link> links;  // from, to
  std::uint64_t active_us = 0;                // collectives ran
};

// Bytes on the wire per byte of payload of an ideal TCP flow at MTU 1500; with larger frames links
// look up to 4 % busier than they are.
inline constexpr double kWirePerPayload = 1514.0 / 1448;

struct Limits {
  std::vector<Resource> resources;  // the largest share first
  std::string headline;
};

Limits find_limits(const std::vector<std::string>& hosts, const std::optional<Fabric>& fabric,
                   const Traffic& traffic);

}  // namespace riffle::tools
