// The shared objects that `riffle bench --plugin` names.
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::bench {

struct Contender {
  std::string name;  // of its rows
  std::string file;  // absolute
};

// Arguments are NAME=FILE or FILE. A name that is not given is what tells the files apart: the last
// part of their paths, seen from the end, that differs among all of them. Two of the same name are
// an error.
Result<std::vector<Contender>> contenders(const std::vector<std::string>& arguments);

// Whether the stand-in for NCCL's host side can load it and finds its tables. A process of its own
// loads it: a plugin stays loaded for good.
Status check_plugin(const Contender& contender);

}  // namespace riffle::bench
