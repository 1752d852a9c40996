#include "test/nccl_host/replay_plan.h"

#include <set>

#include "test/nccl_host/replay_objects.h"

namespace riffle::host {
namespace {

bool is_transfer(const Json& c) {
  const std::string call = c["call"];
  return call == "isend" || call == "irecv" || call == "iallreduce" || call == "test" ||
         call == "iflush";
}

}  // namespace

std::string object_of(const Json& c) {
  for (const char* field : {"sendComm", "recvComm"}) {
    if (c.contains(field)) return object_name("net", c[field]);
  }
  return c.contains("collComm") ? object_name("coll", c["collComm"]) : object_name("net", c["obj"]);
}

ReplayPlan make_replay_plan(const Trace& trace) {
  ReplayPlan plan;
  std::map<std::string, std::string> object_of_request;  // "net 17" -> object
  std::map<std::string, std::size_t> receive_of_request;
  std::map<std::string, int> transfers;
  std::set<int> failed_threads;
  for (const Json& c : trace.calls) {
    const std::string call = c["call"], interface = c["if"];
    if (!is_transfer(c)) {
      plan.service.push_back(&c);
      if (call == "deregMr" || call.rfind("close", 0) == 0) {
        if (call == "closeListen") continue;
        const std::string object = object_of(c);
        plan.transfers_before[&c] = {object, transfers[object]};
      }
      continue;
    }
    const int thread = c["tid"];
    if (c.contains("ret")) failed_threads.insert(thread);
    if (failed_threads.count(thread) != 0) continue;        // NCCL made no call after it either
    if (c.contains("req") && c["req"].is_null()) continue;  // refused; the accepted one follows
    const std::string request = interface + " " + std::to_string(c["req"].get<int>());
    std::string object;
    if (call == "test") {
      object = object_of_request[request];
      auto it = receive_of_request.find(request);
      if (it != receive_of_request.end()) {
        plan.messages[object][it->second].bytes = c["sizes"][0];
        receive_of_request.erase(it);
      }
    } else {
      object = object_of(c);
      object_of_request[request] = object;
      if (call == "isend") plan.messages[object].push_back({c["size"], c["tag"]});
      if (call == "irecv") {
        receive_of_request[request] = plan.messages[object].size();
        plan.messages[object].push_back({0, c["tags"][0]});
      }
    }
    ++transfers[object];
    plan.progress[thread].push_back(&c);
  }
  return plan;
}

}  // namespace riffle::host
