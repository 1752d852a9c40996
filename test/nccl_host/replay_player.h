// The inside of replay(): one trace file on its way into a plugin. replay.cc runs the threads,
// replay_net.cc and replay_collnet.cc make the calls of set-up and teardown, replay_transfers.cc
// those of the progress threads.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "test/nccl_host/replay.h"
#include "test/nccl_host/replay_mirror.h"
#include "test/nccl_host/replay_objects.h"
#include "test/nccl_host/replay_plan.h"

namespace riffle::host {

inline constexpr int kReplayDeadlineMs = 30000;  // for any one wait

class Player {
 public:
  Player(PluginLibrary& library, const Trace& trace, Bootstrap& all);
  Status run();

 private:
  struct Listening {
    std::array<std::byte, kHandleBytes> handle{};
    void* comm = nullptr;
    void* context = nullptr;
  };
  struct Request {
    void* handle = nullptr;
    std::string object;
    const Json* call = nullptr;
    int index = 0;  // message of its connection, or collective of its coll object
  };

  // Set-up and teardown, on the calling thread.
  Status run_service();
  Status wait_for_transfers(const Json& c);
  Status net_call(const Json& c);
  Status net_memory(const Json& c);
  Status meet(void* context, Listening& l, void** send_comm, void** recv_comm);
  Status net_connect(const Json& c, void* context);
  Status net_accept(const Json& c);
  Status introduce(const Json& id, void* ours, void* theirs, bool mirror_sends);
  Status collnet_call(const Json& c);
  Status collnet_connect(const Json& c);
  Status tuner_call(const Json& c);

  // Transfers, on a thread per recorded progress thread.
  Status run_progress(const std::vector<const Json*>& calls);
  template <class F>
  Status until_accepted(const char* what, void** request, F&& call);
  Status post(const Json& c, Request* r);
  Status post_all_reduce(const Json& c, void* comm, Request* r);
  Status finish(const Request& r, const Json& test);
  Status check_all_reduce(const Request& r);

  static int connection_of(const std::string& object) { return std::stoi(object.substr(4)); }
  std::pair<int, int> place_of(const std::string& object) {
    std::scoped_lock lock(mutex_);
    return places_[object];
  }
  // A run that ends in an abort: processes abort one after the other, and what the later ones still
  // have under way then fails.
  bool others_may_have_aborted() const {
    return trace_.header["job"].value("abortOnAsyncError", false);
  }
  std::uint64_t comm_id(const Json& c) const { return job_id_ + c["comm"].get<std::uint64_t>(); }

  NetTable& net_;
  CollNetTable* collnet_;
  TunerTable* tuner_;
  const Trace& trace_;
  Bootstrap& all_;
  ReplayPlan plan_;
  ReplayObjects objects_;
  ReplayMirror mirror_;
  std::map<std::string, void*> contexts_;
  std::map<int, Listening> listening_;
  std::uint64_t job_id_ = 0;                           // the same in all processes
  std::mutex mutex_;                                   // guards places_
  std::map<std::string, std::pair<int, int>> places_;  // coll object: ranks, place
};

}  // namespace riffle::host
