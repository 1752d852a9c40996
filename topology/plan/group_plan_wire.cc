// The wire form of plan sets, all little-endian:
//
//   u32 magic "RPL2", u32 bytes in all, u32 nodes, u8 lanes, u8 name bytes, name,
//   u32 chunk bytes
//   per lane:  u8 levels;  per level: u32 groups
//   per group: u8 pattern | form of cuts << 4, v members, the members, the cuts
//   only if not all may be in the works at once: u8 'W', u32 busy bytes
//   only if small sums have a plan of their own: u8 'S', u8 lanes, u8 name bytes, name, u32 bytes
//   of the largest of them, the lanes as above
//   only if there are relaxed steps: u8 'R', u16 steps, u8 lanes, u32 chunk bytes, v partial plans,
//   each as a lane above, the table's entries (v)
//
// where v is a number in groups of seven bits, low ones first, the top bit of a byte saying that
// more follow. Members are differences, zigzag (0, -1, 1, -2, ...), from the one before; the first
// is from the first member of the group before. Cuts are one of
//
//   0: v first cut, v difference for each further one
//   1: v first cut, v span; the cuts in between are those of even shares
//   2: nothing: the cuts of the group before
#include <algorithm>
#include <limits>

#include "topology/plan/group_plan.h"
#include "topology/plan/limits.h"
#include "topology/plan/shares.h"

namespace riffle {
namespace {

constexpr std::uint32_t kMagic = 0x324c5052;  // "RPL2"
constexpr std::uint8_t kBusyTag = 'W';
constexpr std::uint8_t kSmallTag = 'S';
constexpr std::uint8_t kRelaxedTag = 'R';

enum CutsForm : std::uint8_t { kExplicit = 0, kEven = 1, kAsBefore = 2 };

class Writer {
 public:
  template <class T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
  }
  void put_varint(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<std::uint8_t>(value | 0x80));
    put(static_cast<std::uint8_t>(value));
  }
  void patch_u32(std::size_t at, std::size_t value) {
    for (std::size_t i = 0; i < 4; ++i)
      bytes_[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads past the end give zeros and set a flag that the caller asks for before it trusts anything.
class PlanReader {
 public:
  PlanReader(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  template <class T>
  T get() {
    if (!has(sizeof(T))) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{data_[i]} << (8 * i);
    data_ += sizeof(T);
    left_ -= sizeof(T);
    return static_cast<T>(value);
  }
  std::uint64_t get_varint() {  // of 35 bits at most
    std::uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const auto byte = get<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    short_ = true;  // never ends
    return 0;
  }
  // Also the guard against absurd counts: nothing is allocated that the data could not fill.
  bool has(std::uint64_t bytes) {
    if (bytes > left_) short_ = true;
    return !short_;
  }
  bool is_short() const { return short_; }
  std::uint8_t peek() const { return *data_; }  // something must be left
  std::size_t left() const { return left_; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
  bool short_ = false;
};

const Group& nothing_before() {
  static const Group none{Pattern::kDirect, {0}, {0}};
  return none;
}

CutsForm form_of(const Group& group, const Group& before) {
  if (group.cuts == before.cuts) return kAsBefore;
  const auto even = cuts_of(even_weights(group.members.size()), group.begin(), group.end());
  return group.cuts == even ? kEven : kExplicit;
}

void write_group(const Group& group, const Group& before, Writer& out) {
  const CutsForm form = form_of(group, before);
  out.put(static_cast<std::uint8_t>(static_cast<unsigned>(group.pattern) | unsigned{form} << 4));
  out.put_varint(static_cast<std::uint32_t>(group.members.size()));
  int last = before.members[0];
  for (int m : group.members) {
    const int step = m - last;
    out.put_varint((static_cast<std::uint32_t>(step) << 1) ^ (step < 0 ? ~0u : 0u));
    last = m;
  }
  if (form == kAsBefore) return;
  out.put_varint(group.begin());
  if (form == kEven) return out.put_varint(group.end() - group.begin());
  for (std::size_t i = 1; i < group.cuts.size(); ++i) {
    out.put_varint(group.cuts[i] - group.cuts[i - 1]);
  }
}

void write_lane(const GroupPlan& plan, Writer& out) {
  const Group* before = &nothing_before();
  out.put(static_cast<std::uint8_t>(plan.levels.size()));
  for (const Level& level : plan.levels) {
    out.put(static_cast<std::uint32_t>(level.groups.size()));
    for (const Group& group : level.groups) {
      write_group(group, *before, out);
      before = &group;
    }
  }
}

void write_name(const std::string& name, Writer& out) {
  out.put(static_cast<std::uint8_t>(name.size()));
  for (char c : name) out.put(static_cast<std::uint8_t>(c));
}

void write_small(const SmallPlans& small, Writer& out) {
  out.put(kSmallTag);
  out.put(static_cast<std::uint8_t>(small.lanes.size()));
  write_name(small.name, out);
  out.put(small.bytes);
  for (const GroupPlan& plan : small.lanes) write_lane(plan, out);
}

void write_relaxed(const RelaxedPlans& relaxed, Writer& out) {
  out.put(kRelaxedTag);
  out.put(static_cast<std::uint16_t>(relaxed.steps));
  out.put(static_cast<std::uint8_t>(relaxed.lanes));
  out.put(relaxed.chunk_bytes);
  out.put_varint(static_cast<std::uint32_t>(relaxed.partitions.size()));
  for (const GroupPlan& plan : relaxed.partitions) write_lane(plan, out);
  for (const std::uint32_t entry : relaxed.table) out.put_varint(entry);
}

// What is out of range becomes a value that validate() refuses.
bool read_members(PlanReader& in, int last, Group& group) {
  const std::uint64_t members = in.get_varint();
  if (members == 0 || !in.has(members)) return false;
  group.members.resize(members);
  for (int& m : group.members) {
    const std::uint64_t zigzag = in.get_varint();
    if (zigzag > 2 * std::uint64_t{kMaxNodes}) return false;
    const int step = static_cast<int>(zigzag >> 1);
    last = std::clamp(last + ((zigzag & 1) != 0 ? ~step : step), -1, kMaxNodes);
    m = last;
  }
  return true;
}

bool read_group(PlanReader& in, const Group& before, Group& group) {
  const auto head = in.get<std::uint8_t>();
  group.pattern = static_cast<Pattern>(head & 15);
  if (!read_members(in, before.members[0], group)) return false;
  const std::size_t cuts = group.members.size() + 1;
  if (head >> 4 == kAsBefore) {
    group.cuts = before.cuts;
    return group.cuts.size() == cuts;
  }
  std::uint64_t at = in.get_varint();
  if (at > kShareUnits) return false;
  if (head >> 4 == kEven) {
    const std::uint64_t span = in.get_varint();
    if (span > kShareUnits - at) return false;
    group.cuts =
        cuts_of(even_weights(cuts - 1), static_cast<Share>(at), static_cast<Share>(at + span));
    return true;
  }
  if (head >> 4 != kExplicit || !in.has(cuts - 1)) return false;
  for (std::size_t i = 0; i < cuts; ++i) {
    if (i > 0) at += in.get_varint();
    if (at > kShareUnits) return false;
    group.cuts.push_back(static_cast<Share>(at));
  }
  return true;
}

bool read_lane(PlanReader& in, GroupPlan& plan) {
  const Group* before = &nothing_before();
  plan.levels.resize(in.get<std::uint8_t>());
  for (Level& level : plan.levels) {
    const auto groups = in.get<std::uint32_t>();
    if (!in.has(std::uint64_t{groups} * 3)) return false;  // the least a group takes
    level.groups.resize(groups);
    for (Group& group : level.groups) {
      if (!read_group(in, *before, group)) return false;
      before = &group;
    }
  }
  return true;
}

void read_name(PlanReader& in, std::string& name) {
  const std::size_t size = in.get<std::uint8_t>();
  for (std::size_t i = 0; i < size && !in.is_short(); ++i) {
    name.push_back(static_cast<char>(in.get<std::uint8_t>()));
  }
}

bool read_lanes(PlanReader& in, int nodes, std::vector<GroupPlan>& lanes) {
  for (GroupPlan& plan : lanes) {
    plan.nodes = nodes;
    if (!read_lane(in, plan)) return false;
  }
  return true;
}

// False: not sound, or it ends too early.
bool read_small(PlanReader& in, int nodes, SmallPlans& small) {
  small.lanes.resize(in.get<std::uint8_t>());
  read_name(in, small.name);
  small.bytes = in.get<std::uint32_t>();
  return !small.is_empty() && read_lanes(in, nodes, small.lanes);
}

// False: not sound, or it ends too early.
bool read_relaxed(PlanReader& in, int nodes, RelaxedPlans& relaxed) {
  relaxed.steps = in.get<std::uint16_t>();
  relaxed.lanes = in.get<std::uint8_t>();
  relaxed.chunk_bytes = in.get<std::uint32_t>();
  const std::uint64_t partitions = in.get_varint();
  const std::uint64_t entries = std::uint64_t{relaxed.steps} * relaxed.lanes;
  if (entries == 0 || !in.has(partitions) || !in.has(entries)) return false;
  relaxed.partitions.resize(partitions);
  if (!read_lanes(in, nodes, relaxed.partitions)) return false;
  if (!in.has(entries)) return false;
  relaxed.table.resize(entries);
  for (std::uint32_t& entry : relaxed.table) {
    entry = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(in.get_varint(), std::numeric_limits<std::uint32_t>::max()));
  }
  return true;
}

}  // namespace

std::vector<std::uint8_t> encode(const PlanSet& plans) {
  RIFFLE_CHECK(validate(plans).is_ok(), "only sound plans are sent");
  Writer out;
  out.put(kMagic);
  out.put(std::uint32_t{0});
  out.put(static_cast<std::uint32_t>(plans.lanes[0].nodes));
  out.put(static_cast<std::uint8_t>(plans.lanes.size()));
  write_name(plans.name, out);
  out.put(plans.chunk_bytes);
  for (const GroupPlan& plan : plans.lanes) write_lane(plan, out);
  if (plans.busy_bytes > 0) {
    out.put(kBusyTag);
    out.put(plans.busy_bytes);
  }
  if (!plans.small.is_empty()) write_small(plans.small, out);
  if (!plans.relaxed.is_empty()) write_relaxed(plans.relaxed, out);
  out.patch_u32(4, out.size());
  return out.take();
}

Result<PlanSet> decode_plan_set(const std::uint8_t* data, std::size_t size) {
  PlanReader in(data, size);
  if (in.get<std::uint32_t>() != kMagic) return invalid_argument("plan from the wire: not a plan");
  const auto total = in.get<std::uint32_t>();
  if (in.is_short() || total != size) {
    return invalid_argument("plan from the wire: it says " + std::to_string(total) + " bytes, " +
                            std::to_string(size) + " are here");
  }
  const auto nodes = in.get<std::uint32_t>();
  if (nodes < 1 || nodes > kMaxNodes) {
    return invalid_argument("plan from the wire: " + std::to_string(nodes) +
                            " nodes, accepted 1.." + std::to_string(kMaxNodes));
  }
  PlanSet plans;
  plans.lanes.resize(in.get<std::uint8_t>());
  read_name(in, plans.name);
  plans.chunk_bytes = in.get<std::uint32_t>();
  bool is_sound = read_lanes(in, static_cast<int>(nodes), plans.lanes);
  const auto next_is = [&](std::uint8_t tag) {
    if (!is_sound || in.is_short() || in.left() == 0 || in.peek() != tag) return false;
    (void)in.get<std::uint8_t>();
    return true;
  };
  if (next_is(kBusyTag)) {
    plans.busy_bytes = in.get<std::uint32_t>();
    is_sound = plans.busy_bytes > 0;
  }
  if (next_is(kSmallTag)) is_sound = read_small(in, static_cast<int>(nodes), plans.small);
  if (next_is(kRelaxedTag)) is_sound = read_relaxed(in, static_cast<int>(nodes), plans.relaxed);
  if (in.is_short()) return invalid_argument("plan from the wire: it ends too early");
  if (!is_sound) return invalid_argument("plan from the wire: a group out of range");
  if (in.left() != 0) {
    return invalid_argument("plan from the wire: " + std::to_string(in.left()) +
                            " bytes behind its end");
  }
  if (Status s = validate(plans); !s) return invalid_argument("plan from the wire: " + s.message());
  return plans;
}

// FNV-1a over the wire form with a final mix (Stafford's variant 13), so that every bit of the
// input reaches every bit of the digest. It guards against mistakes, not against forgers.
std::uint64_t digest(const PlanSet& plans) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (std::uint8_t byte : encode(plans)) h = (h ^ byte) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

}  // namespace riffle
