// What a communicator tells the plugin's profiler, in NCCL's order and on NCCL's threads: per
// collective an API event, its Coll event, and when the proxy takes its work two ProxyOps per
// channel of a CollNet (one per direction, without difference) or one per channel of a ring or
// tree; a ProxyCtrl event when the progress thread goes to sleep. Only what the plugin's mask asks
// for, which may change at any time.
//
// launched() runs on the application's thread; proxy_op() and sleeps() on the progress thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lab/nccl_host/tables/plugin_tables.h"
#include "lab/nccl_host/work/schedule.h"

namespace riffle::host {

class ProfilerFeed {
 public:
  // A null table, or one that fails at init, is told nothing.
  ProfilerFeed(ProfilerTable* table, std::uint64_t comm_id, int ranks, int rank);
  ~ProfilerFeed() { end(); }
  ProfilerFeed(const ProfilerFeed&) = delete;
  ProfilerFeed& operator=(const ProfilerFeed&) = delete;

  // Appends the ProxyOps that will follow.
  void launched(const Scheduled& s, const Layout& layout, std::vector<ProfilerEvent>* proxy_ops);
  void proxy_op(const ProfilerEvent& op);
  void sleeps();
  void end();

 private:
  bool wants(int types) const;

  ProfilerTable* table_;
  void* context_ = nullptr;
  std::map<Function, std::uint64_t> sequences_;
};

}  // namespace riffle::host
