// Turns scheduled collectives into one launch: the programs of every channel, and the proxy work on
// every connection that those programs will touch.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lab/nccl_host/net_fabric.h"
#include "lab/nccl_host/progress.h"
#include "lab/nccl_host/work/message_cut.h"
#include "lab/nccl_host/work/schedule.h"
#include "lab/nccl_host/work/tree.h"

namespace riffle::host {

// The tree a channel uses: NCCL gives the first half of the channels tree 0, the rest tree 1.
TreePlace channel_tree(const Layout& layout, int rank, int channel);

class LaunchBuilder {
 public:
  LaunchBuilder(NetFabric& net, CollNetLink* collnet, int rank, const Layout& layout)
      : net_(net), collnet_(collnet), rank_(rank), layout_(layout) {}

  void add(const Scheduled& s);
  void add_message(const Collective& m);  // send or receive
  // One that is none of NCCL's, over links of this channel, after what the channel does already.
  void add_program(int channel, Program program, std::vector<NetLink*> receives,
                   std::vector<NetLink*> sends) {
    add_program(channel, Way::kForth, std::move(program), std::move(receives), std::move(sends));
  }
  Launch take();

 private:
  enum class Way { kForth, kBack, kMessages };  // lanes of a channel that run side by side
  void add_ring(const Scheduled& s, int channel, const Part& part);
  void add_tree(const Scheduled& s, int channel, const Part& part);
  void add_collnet(const Scheduled& s);
  void add_program(int channel, Way way, Program program, std::vector<NetLink*> receives,
                   std::vector<NetLink*> sends, std::optional<std::size_t> capacity_limit = {});
  Program program_for(const Collective& c, Steps steps) const;

  NetFabric& net_;
  CollNetLink* collnet_;
  int rank_;
  Layout layout_;
  std::map<std::pair<int, Way>, std::vector<Program>> lanes_;
  Launch launch_;
};

}  // namespace riffle::host
