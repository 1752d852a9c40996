// What `riffle bench` measures in turns: the shared objects that --plugin names, or one of them and
// its rivals (--in-turns).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/peer.h"
#include "topology/base/status.h"

namespace riffle::bench {

struct Contender {
  std::string name;  // of its rows
  std::string file;  // absolute
  int warmup = -1;   // all-reduces of its own before the measured ones; -1: as the question says
  std::vector<std::pair<std::string, std::string>> environment = {};  // of its processes
  std::optional<Peer> rival = {};  // it is that one; `file` is the shared object beside it
};

// Arguments are NAME=FILE or FILE. A name that is not given is what tells the files apart: the last
// part of their paths, seen from the end, that differs among all of them. Two of the same name are
// an error.
Result<std::vector<Contender>> contenders(const std::vector<std::string>& arguments);

// Arguments are NAME:KEY=VALUE,KEY=VALUE...: environment of the contender of that name, or its
// number of all-reduces before the measured ones where KEY is warmup (0 to 1000).
Status apply_settings(const std::vector<std::string>& arguments, std::vector<Contender>& all);

// Riffle by `file`, then the others of `peers`. An error: one of them cannot run here.
Result<std::vector<Contender>> rivals(const std::string& file, const std::vector<Peer>& peers);

// Whether the stand-in for NCCL's host side can load it and finds its tables. A process of its own
// loads it: a plugin stays loaded for good.
Status check_plugin(const Contender& contender);

}  // namespace riffle::bench
