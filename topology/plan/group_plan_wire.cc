// The wire form of plan sets, all little-endian:
//
//   u32 magic "RPL1", u32 bytes in all, u32 nodes, u8 lanes, u8 name bytes, name
//   per lane:  u8 levels;  per level: u32 groups
//   per group: u8 pattern, u32 members, u16 member ranks ..., u32 cuts (one more) ...
#include <limits>

#include "topology/plan/group_plan.h"
#include "topology/plan/limits.h"

namespace riffle {
namespace {

constexpr std::uint32_t kMagic = 0x314c5052;  // "RPL1"
static_assert(kMaxNodes - 1 <= std::numeric_limits<std::uint16_t>::max());

class Writer {
 public:
  template <class T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
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
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  template <class T>
  T get() {
    if (!has(sizeof(T))) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{data_[i]} << (8 * i);
    data_ += sizeof(T);
    left_ -= sizeof(T);
    return static_cast<T>(value);
  }
  // Also the guard against absurd counts: nothing is allocated that the data could not fill.
  bool has(std::uint64_t bytes) {
    if (bytes > left_) short_ = true;
    return !short_;
  }
  bool is_short() const { return short_; }
  std::size_t left() const { return left_; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
  bool short_ = false;
};

void write_group(const Group& group, Writer& out) {
  out.put(static_cast<std::uint8_t>(group.pattern));
  out.put(static_cast<std::uint32_t>(group.members.size()));
  for (int m : group.members) out.put(static_cast<std::uint16_t>(m));
  for (Share c : group.cuts) out.put(c);
}

bool read_group(Reader& in, Group& group) {
  group.pattern = static_cast<Pattern>(in.get<std::uint8_t>());
  const auto members = in.get<std::uint32_t>();
  if (!in.has(std::uint64_t{members} * 6 + 4)) return false;
  group.members.resize(members);
  for (int& m : group.members) m = in.get<std::uint16_t>();
  group.cuts.resize(std::size_t{members} + 1);
  for (Share& c : group.cuts) c = in.get<std::uint32_t>();
  return true;
}

bool read_lane(Reader& in, GroupPlan& plan) {
  plan.levels.resize(in.get<std::uint8_t>());
  for (Level& level : plan.levels) {
    const auto groups = in.get<std::uint32_t>();
    if (!in.has(std::uint64_t{groups} * 9)) return false;  // the least a group takes
    level.groups.resize(groups);
    for (Group& group : level.groups) {
      if (!read_group(in, group)) return false;
    }
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
  out.put(static_cast<std::uint8_t>(plans.name.size()));
  for (char c : plans.name) out.put(static_cast<std::uint8_t>(c));
  for (const GroupPlan& plan : plans.lanes) {
    out.put(static_cast<std::uint8_t>(plan.levels.size()));
    for (const Level& level : plan.levels) {
      out.put(static_cast<std::uint32_t>(level.groups.size()));
      for (const Group& group : level.groups) write_group(group, out);
    }
  }
  out.patch_u32(4, out.size());
  return out.take();
}

Result<PlanSet> decode_plan_set(const std::uint8_t* data, std::size_t size) {
  Reader in(data, size);
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
  const std::size_t name_size = in.get<std::uint8_t>();
  for (std::size_t i = 0; i < name_size && !in.is_short(); ++i) {
    plans.name.push_back(static_cast<char>(in.get<std::uint8_t>()));
  }
  for (GroupPlan& plan : plans.lanes) {
    plan.nodes = static_cast<int>(nodes);
    if (!read_lane(in, plan)) break;
  }
  if (in.is_short()) return invalid_argument("plan from the wire: it ends too early");
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
