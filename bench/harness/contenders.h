// The shared objects that `riffle bench --plugin` names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/base/status.h"

namespace riffle::bench {

struct Contender {
  std::string name;  // of its rows
  std::string file;  // absolute
  int warmup = -1;   // all-reduces of its own before the measured ones; -1: as the question says
  std::vector<std::pair<std::string, std::string>> environment = {};  // of its processes
};

// Arguments are NAME=FILE or FILE. A name that is not given is what tells the files apart: the last
// part of their paths, seen from the end, that differs among all of them. Two of the same name are
// an error.
Result<std::vector<Contender>> contenders(const std::vector<std::string>& arguments);

// Arguments are NAME:KEY=VALUE,KEY=VALUE...: environment of the contender of that name, or its
// number of all-reduces before the measured ones where KEY is warmup (0 to 1000).
Status apply_settings(const std::vector<std::string>& arguments, std::vector<Contender>& all);

// Whether the stand-in for NCCL's host side can load it and finds its tables. A process of its own
// loads it: a plugin stays loaded for good.
Status check_plugin(const Contender& contender);

}  // namespace riffle::bench
