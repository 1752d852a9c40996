#include "plugin/collective/engine/generation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plugin/collective/engine/peer_weights.h"
#include "plugin/collective/engine/plan_sizes.h"
#include "plugin/collective/engine/wire.h"

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

// A group of all nodes for calls that say themselves where the blocks are. Any block may fill a
// whole chunk, hence the limits: every shard is sized as if it were everything.
Program blocks_program(int nodes, int rank) {
  Group all{Pattern::kDirect, {}, std::vector<Share>(nodes + 1, 0)};
  for (int i = 0; i < nodes; ++i) all.members.push_back(i);
  all.cuts.back() = kShareUnits;
  LocalGroup local = local_group(all, rank);
  local.level = kBlocksLevel;
  Program program;
  program.levels = 1;
  program.groups.push_back(std::move(local));
  program.root_children.push_back(0);
  return program;
}

}  // namespace

std::size_t Generation::index(int peer, int level) const {
  const int cls = level == kBlocksLevel ? classes_ - 1 : level;
  return static_cast<std::size_t>(peer) * classes_ + cls;
}

bool Generation::has_level(int level) const {
  return level == kBlocksLevel || (level >= 0 && level < classes_ - 1);
}

Flow* Generation::flow(int peer, int level) {
  return has_level(level) ? flows_[index(peer, level)].get() : nullptr;
}

SlotPool* Generation::pool(int peer, int level) {
  return has_level(level) ? pools_[index(peer, level)].get() : nullptr;
}

void Generation::clear_flows() {
  for (auto& flow : flows_) {
    if (flow) flow->clear();
  }
}

Result<std::unique_ptr<Generation>> Generation::make(const PlanSet& plans, std::uint64_t number,
                                                     int rank, int size,
                                                     const EngineOptions& options) {
  std::unique_ptr<Generation> g(new Generation);
  g->number_ = number;
  g->chunk_bytes_ = plans.chunk_bytes == 0
                        ? options.chunk_bytes
                        : std::min<std::size_t>(plans.chunk_bytes, options.chunk_bytes);
  if (Status s = g->add_lanes(plans.lanes, rank, size, g->chunk_bytes_, &g->lanes_); !s) return s;
  g->small_bytes_ = std::min<std::size_t>(plans.small.bytes, options.chunk_bytes);
  if (Status s = g->add_lanes(plans.small.lanes, rank, size, g->small_bytes_, &g->small_); !s) {
    return s;
  }
  for (const GroupPlan& plan : plans.relaxed.partitions) {
    Result<Program> program = compile(plan, rank);
    if (!program) return program.status();
    g->levels_ = std::max(g->levels_, program->levels);
    g->relaxed_.push_back(std::move(*program));
  }
  g->relaxed_plans_ = plans.relaxed;
  g->relaxed_plans_.partitions.clear();
  if (g->levels_ >= kBlocksLevel) {
    return invalid_argument("plan: " + std::to_string(g->levels_) +
                            " levels, accepted are at most " + std::to_string(kBlocksLevel - 1));
  }
  g->send_bytes_ = send_window_bytes(plans, rank, options.send_bytes);
  const auto threads = static_cast<std::size_t>(options.threads);
  g->busy_bytes_ = (plans.busy_bytes + threads - 1) / threads;
  if (plans.busy_bytes > 0) g->windowed_chunks_ = plans.windowed_chunks();
  g->weights_ = peer_weights(plans, rank);
  const auto make_room = [&](const Lanes& lanes, std::size_t chunk_bytes) {
    for (const Program& lane : lanes.programs) {
      const std::size_t frames = most_frames(lane, chunk_bytes, options.piece_bytes);
      g->most_waiting_ = std::max(g->most_waiting_, options.max_chunks * frames);
    }
  };
  make_room(g->lanes_, g->chunk_bytes_);
  make_room(g->small_, g->small_bytes_);
  g->blocks_ = blocks_program(size, rank);
  g->classes_ = g->levels_ + 1;
  if (Status s = g->make_flows(rank, size, options); !s) return s;
  g->make_runs(options);
  return g;
}

// Chunks in these lanes have at most `chunk_bytes` bytes.
Status Generation::add_lanes(const std::vector<GroupPlan>& plans, int rank, int size,
                             std::size_t chunk_bytes, Lanes* lanes) {
  const int first_level = levels_;
  for (const GroupPlan& plan : plans) {
    if (plan.nodes != size) {
      return invalid_argument("plan for " + std::to_string(plan.nodes) + " nodes, we are " +
                              std::to_string(size));
    }
    Result<Program> program = compile(plan, rank, first_level);
    if (!program) return program.status();
    levels_ = std::max(levels_, program->levels);
    lanes->programs.push_back(std::move(*program));
  }
  lanes->sums_depend_on_owner = sums_depend_on_owner(plans);
  lanes->small_grain = small_grain(plans, chunk_bytes);
  return Status::ok();
}

// Credits at the sender and slots at the receiver come from the same sums over the same plan, so
// both sides agree without a message. See flow.h for why a chunk's fragments must all fit.
Status Generation::make_flows(int rank, int size, const EngineOptions& options) {
  struct Sizes {
    int slots = 0;
    std::size_t slot_bytes = 0;
  };
  const std::size_t flows = static_cast<std::size_t>(size) * classes_;
  std::vector<Sizes> in(flows), out(flows);

  const auto grow = [&options](Sizes* s, const Demand& d) {
    if (d.fragments == 0) return;
    const std::size_t bytes = (d.fragment_bytes + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
    s->slot_bytes = std::max(s->slot_bytes, bytes);
    const std::size_t window = (options.window_bytes + bytes - 1) / bytes;
    // The window is a wish, bounded so that tiny fragments do not ask for thousands of slots.
    const std::size_t wanted = std::max(d.fragments, std::min<std::size_t>(window, 64));
    s->slots = std::max(s->slots, std::max(static_cast<int>(wanted), kMinSlots));
  };
  const auto add_program = [&](const Program& program, const EngineOptions& o) {
    std::vector<Demand> in_demand(flows), out_demand(flows);
    for (const LocalGroup& local : program.groups) {
      const auto flow = [&](int member) { return index(local.group.members[member], local.level); };
      for (int shard = 0; shard < local.size(); ++shard) {
        const ShardRoute& route = local.routes[shard];
        for (const int m : route.partials_from) in_demand[flow(m)].add_shard(local.group, shard, o);
        if (shard == local.me) continue;
        out_demand[flow(route.partial_to)].add_shard(local.group, shard, o);
      }
    }
    for (std::size_t i = 0; i < flows; ++i) {
      grow(&in[i], in_demand[i]);
      grow(&out[i], out_demand[i]);
    }
  };
  for (const auto* programs : {&lanes_.programs, &relaxed_}) {
    for (const Program& program : *programs) add_program(program, options);
  }
  EngineOptions small = options;
  small.chunk_bytes = small_bytes_;
  for (const Program& program : small_.programs) add_program(program, small);
  for (int peer = 0; options.has_blocks && peer < size; ++peer) {
    if (peer == rank) continue;
    Demand whole;
    whole.fragments = max_fragments(0, kShareUnits, options.chunk_bytes, options.piece_bytes);
    whole.fragment_bytes = options.piece_bytes;
    grow(&in[index(peer, kBlocksLevel)], whole);
    grow(&out[index(peer, kBlocksLevel)], whole);
  }

  std::size_t total = 0;
  for (const Sizes& s : in) total += s.slots * s.slot_bytes;
  Result<std::unique_ptr<SlotMemory>> memory = SlotMemory::map(total);
  if (!memory) return memory.status();
  slot_memory_ = std::move(*memory);

  flows_.resize(flows);
  pools_.resize(flows);
  std::byte* at = slot_memory_->data();
  const int pending = options.max_chunks;
  for (std::size_t i = 0; i < flows; ++i) {
    if (out[i].slots > 0)
      flows_[i] = std::make_unique<Flow>(out[i].slots, options.max_chunks, pending);
    if (in[i].slots > 0) {
      pools_[i] = std::make_unique<SlotPool>(at, in[i].slots, in[i].slot_bytes);
      at += in[i].slots * in[i].slot_bytes;
    }
  }
  return Status::ok();
}

void Generation::make_runs(const EngineOptions& options) {
  std::size_t most_groups = 1;
  for (const Lanes* lanes : {&lanes_, &small_}) {
    for (const Program& lane : lanes->programs) {
      most_groups = std::max(most_groups, lane.groups.size());
    }
  }

  const auto reserve = [&options](GroupRun* run, const LocalGroup& local) {
    const auto fragments = [&](int member) {
      return max_fragments(local.group.cuts[member], local.group.cuts[member + 1],
                           options.chunk_bytes, options.piece_bytes);
    };
    std::size_t missing = 0, waiting = 0;
    for (int shard = 0; shard < local.size(); ++shard) {
      const ShardRoute& route = local.routes[shard];
      if (route.partials_from.empty()) continue;
      missing += fragments(shard);
      waiting += fragments(shard) * route.operands();
    }
    run->cuts.reserve(local.size() + 1);
    run->not_final.reserve(fragments(local.me));
    run->missing.reserve(missing);
    run->waiting.reserve(waiting);
    run->final_comes.reserve(max_fragments(local.group.cuts.front(), local.group.cuts.back(),
                                           options.chunk_bytes, options.piece_bytes) +
                             local.size());
    run->first_fragment.reserve(local.size());
    run->first_waiting.reserve(local.size());
  };
  runs_.resize(options.max_chunks);
  for (std::vector<GroupRun>& runs : runs_) {
    runs.resize(most_groups);
    // Chunk i only ever runs lanes i, i + max_chunks, ... modulo the lanes; reserving for all of
    // them keeps this simple.
    for (const std::vector<Program>* programs : {&lanes_.programs, &small_.programs, &relaxed_}) {
      for (const Program& lane : *programs) {
        for (std::size_t g = 0; g < lane.groups.size(); ++g) reserve(&runs[g], lane.groups[g]);
      }
    }
  }
}

}  // namespace riffle
