// Engine, part 1: everything that is sized once, when the plan is installed.
#include <algorithm>
#include <string>
#include <utility>

#include "plugin/collective/engine.h"
#include "plugin/collective/wire.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

constexpr int kMinSlots = 4;
constexpr std::size_t kSlotAlign = 64;

// What one chunk can send from one member of a group to another as partial sums.
struct Demand {
  std::size_t fragments = 0;
  std::size_t fragment_bytes = 0;

  void add_shard(const Group& g, int shard, const EngineOptions& o) {
    const Share begin = g.cuts[shard], end = g.cuts[shard + 1];
    if (begin == end) return;
    fragments += max_fragments(begin, end, o.chunk_bytes, o.piece_bytes);
    fragment_bytes =
        std::max(fragment_bytes, max_fragment_bytes(begin, end, o.chunk_bytes, o.piece_bytes));
  }
};

void add_demand(const LocalGroup& local, int from, int to, const EngineOptions& o, Demand* demand) {
  const int members = local.size();
  if (local.group.pattern == Pattern::kDirect) {
    demand->add_shard(local.group, to, o);
  } else if ((from + 1) % members == to) {
    for (int shard = 0; shard < members; ++shard) {
      if (shard != from) demand->add_shard(local.group, shard, o);
    }
  }
}

// A group of all nodes for calls that say themselves where the blocks are. Any block may fill a
// whole chunk, hence the limits: every shard is sized as if it were everything.
Program blocks_program(int nodes, int rank) {
  LocalGroup local;
  local.level = kBlocksLevel;
  local.me = rank;
  for (int i = 0; i < nodes; ++i) local.group.members.push_back(i);
  local.group.cuts.assign(nodes + 1, 0);
  local.group.cuts.back() = kShareUnits;
  Program program;
  program.levels = 1;
  program.groups.push_back(std::move(local));
  program.root_children.push_back(0);
  return program;
}

}  // namespace

std::size_t Engine::flow_index(int peer, int level) const {
  const int cls = level == kBlocksLevel ? classes_ - 1 : level;
  return static_cast<std::size_t>(peer) * classes_ + cls;
}

const Program& Engine::program_of(Collective collective, std::uint64_t seq) const {
  return collective == Collective::kAllReduce ? lanes_[seq % lanes_.size()] : blocks_;
}

Status Engine::install(const PlanSet& plans) {
  RIFFLE_CHECK(lanes_.empty(), "a plan is installed already");
  all_reduce_chunk_bytes_ = plans.chunk_bytes == 0
                                ? options_.chunk_bytes
                                : std::min<std::size_t>(plans.chunk_bytes, options_.chunk_bytes);
  int levels = 0;
  for (const GroupPlan& plan : plans.lanes) {
    Result<Program> program = compile(plan, mesh_->rank());
    if (!program) return program.status();
    levels = std::max(levels, program->levels);
    lanes_.push_back(std::move(*program));
  }
  if (levels >= kBlocksLevel) {
    return invalid_argument("plan: " + std::to_string(levels) + " levels, accepted are at most " +
                            std::to_string(kBlocksLevel - 1));
  }
  blocks_ = blocks_program(mesh_->size(), mesh_->rank());
  classes_ = levels + 1;
  if (Status s = make_flows(); !s) return s;
  make_chunks();
  Result<std::unique_ptr<SlotMemory>> discard = SlotMemory::map(kMaxFramePayload);
  if (!discard) return discard.status();
  discard_ = std::move(*discard);
  return Status::ok();
}

// Credits at the sender and slots at the receiver come from the same sums over the same plan, so
// both sides agree without a message. See flow.h for why a chunk's fragments must all fit.
Status Engine::make_flows() {
  struct Sizes {
    int slots = 0;
    std::size_t slot_bytes = 0;
  };
  const int me = mesh_->rank();
  const std::size_t flows = static_cast<std::size_t>(mesh_->size()) * classes_;
  std::vector<Sizes> in(flows), out(flows);

  const auto grow = [this](Sizes* s, const Demand& d) {
    if (d.fragments == 0) return;
    const std::size_t bytes = (d.fragment_bytes + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
    s->slot_bytes = std::max(s->slot_bytes, bytes);
    const std::size_t window = (options_.window_bytes + bytes - 1) / bytes;
    // The window is a wish, bounded so that tiny fragments do not ask for thousands of slots.
    const std::size_t wanted = std::max(d.fragments, std::min<std::size_t>(window, 64));
    s->slots = std::max(s->slots, std::max(static_cast<int>(wanted), kMinSlots));
  };
  const auto add_program = [&](const Program& program) {
    std::vector<Demand> in_demand(flows), out_demand(flows);
    for (const LocalGroup& local : program.groups) {
      for (int m = 0; m < local.size(); ++m) {
        if (m == local.me) continue;
        const std::size_t flow = flow_index(local.group.members[m], local.level);
        add_demand(local, m, local.me, options_, &in_demand[flow]);
        add_demand(local, local.me, m, options_, &out_demand[flow]);
      }
    }
    for (std::size_t i = 0; i < flows; ++i) {
      grow(&in[i], in_demand[i]);
      grow(&out[i], out_demand[i]);
    }
  };
  for (const Program& lane : lanes_) add_program(lane);
  for (int peer = 0; options_.has_blocks && peer < mesh_->size(); ++peer) {
    if (peer == me) continue;
    Demand whole;
    whole.fragments = max_fragments(0, kShareUnits, options_.chunk_bytes, options_.piece_bytes);
    whole.fragment_bytes = options_.piece_bytes;
    grow(&in[flow_index(peer, kBlocksLevel)], whole);
    grow(&out[flow_index(peer, kBlocksLevel)], whole);
  }

  std::size_t total = 0;
  for (const Sizes& s : in) total += s.slots * s.slot_bytes;
  Result<std::unique_ptr<SlotMemory>> memory = SlotMemory::map(total);
  if (!memory) return memory.status();
  slot_memory_ = std::move(*memory);

  flows_.resize(flows);
  pools_.resize(flows);
  std::byte* at = slot_memory_->data();
  const int pending = options_.max_chunks;
  for (std::size_t i = 0; i < flows; ++i) {
    if (out[i].slots > 0)
      flows_[i] = std::make_unique<Flow>(out[i].slots, options_.max_chunks, pending);
    if (in[i].slots > 0) {
      pools_[i] = std::make_unique<SlotPool>(at, in[i].slots, in[i].slot_bytes);
      at += in[i].slots * in[i].slot_bytes;
    }
  }
  return Status::ok();
}

void Engine::make_chunks() {
  chunks_.resize(options_.max_chunks);
  early_.resize(options_.max_chunks);
  std::size_t most_members = mesh_->size();
  std::size_t most_groups = 1;
  for (const Program& lane : lanes_) most_groups = std::max(most_groups, lane.groups.size());
  frames_to_.assign(most_members, 0);

  const auto reserve = [this](GroupRun* run, const LocalGroup& local) {
    const auto fragments = [&](int member) {
      return max_fragments(local.group.cuts[member], local.group.cuts[member + 1],
                           options_.chunk_bytes, options_.piece_bytes);
    };
    std::size_t own = fragments(local.me), all = 0;
    for (int m = 0; m < local.size(); ++m) all += fragments(m);
    const bool ring = local.group.pattern == Pattern::kRing;
    run->cuts.reserve(local.size() + 1);
    run->not_final.reserve(own);
    run->missing.reserve(ring ? all : own);
    run->waiting.reserve(ring ? all : own * local.size());
    if (ring) run->first_fragment.reserve(local.size() + 1);
  };
  for (int i = 0; i < options_.max_chunks; ++i) {
    chunks_[i].index = i;
    chunks_[i].runs.resize(most_groups);
    // Chunk i only ever runs lanes i, i + max_chunks, ... modulo the lanes; reserving for all of
    // them keeps this simple.
    for (const Program& lane : lanes_) {
      for (std::size_t g = 0; g < lane.groups.size(); ++g) {
        reserve(&chunks_[i].runs[g], lane.groups[g]);
      }
    }
    early_[i].reserve(kMinSlots);
  }
}

}  // namespace riffle
