// The calls of a trace file, sorted by the thread that makes them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/nccl_host/replay_mirror.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host {

// What the replay of one file needs to know before it starts.
struct ReplayPlan {
  std::map<int, std::vector<const Json*>> progress;            // by recorded thread
  std::vector<const Json*> service;                            // everything else
  std::map<std::string, std::vector<MirrorMessage>> messages;  // by NET object: sizes and tags
  std::map<const Json*, std::pair<std::string, int>> transfers_before;  // of a teardown call
};

ReplayPlan make_replay_plan(const Trace& trace);

// The name (replay_objects.h) of the connection or coll object that a call works on.
std::string object_of(const Json& call);

}  // namespace riffle::host
