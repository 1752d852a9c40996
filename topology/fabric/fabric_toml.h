// The contents of a fabric file as data, before any communicator picks its nodes. Internal to
// topology/fabric; it keeps toml++ in one translation unit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle {

struct FabricFile {
  struct Rates {
    std::int64_t out_kbps = 0, in_kbps = 0;
  };
  struct Node {
    std::optional<Rates> rates;  // none: the default
    int rack = -1;               // index in racks; -1: none given
    std::int64_t line = 0;
  };
  std::optional<Rates> default_rates;
  std::int64_t latency_us = Fabric{}.latency_us;
  std::optional<std::int64_t> rack_latency_us;
  std::vector<RackLink> racks;
  std::map<std::string, Node> nodes;  // by name
};

Result<FabricFile> read_toml(const std::string& text, const std::string& origin);

}  // namespace riffle
