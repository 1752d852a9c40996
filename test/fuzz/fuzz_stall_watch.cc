// What nodes tell each other when nothing moves: whatever comes, each message is taken as it says
// or refused with a reason, and who is named at the end is a node that is waited for.
//
// An input is the message of node 0, a byte 0xff and seven more like it, and the message of node 2.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "lab/memory/memory_network.h"
#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/stall_watch.h"
#include "test/fuzz/target.h"
#include "test/manual_clock.h"
#include "topology/base/time.h"

namespace riffle::fuzz {
namespace {

constexpr int kNodes = 3, kOwn = 1;
constexpr std::size_t kDividerBytes = 8;
using Nodes = StallWatch::Nodes;

Bytes message_of(const std::vector<std::uint64_t>& numbers) {
  ByteWriter w;
  for (const std::uint64_t n : numbers) w.number(n);
  return w.take();
}

// By the book: a count, then so many nodes. (A count beyond the nodes there are is taken for that.)
std::optional<Nodes> read(const Bytes& message) {
  if (message.size() < 8 || message.size() % 8 != 0) return std::nullopt;
  const auto number = [&](std::size_t i) {
    std::uint64_t v = 0;
    for (std::size_t at = 8; at-- > 0;) v = v << 8 | message[8 * i + at];
    return v;
  };
  const std::uint64_t count = std::min<std::uint64_t>(number(0), kNodes);
  if (message.size() != 8 * (1 + count)) return std::nullopt;
  Nodes nodes;
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (number(i) >= kNodes) return std::nullopt;
    nodes.push_back(static_cast<int>(number(i)));
  }
  return nodes;
}

struct World {
  World() { watch.start(); }

  MemoryNetwork network{kNodes, 1};
  testing::ManualClock clock;
  testing::ClockMesh mesh{network.mesh(kOwn), clock};
  int stalls = 0;
  int named_by = -1;
  Nodes named;
  StallWatch watch{&mesh,
                   &clock,
                   8 * kSecond,
                   {.waits_for = [] { return Nodes{0}; },
                    .tell = [](const std::vector<std::uint8_t>&) {},
                    .stalled =
                        [this](int node, const Nodes& whom) {
                          ++stalls;
                          named_by = node;
                          named = whom;
                        }}};
};

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& [first, second] :
       std::vector<std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>>{
           {{1, 2}, {0}},
           {{0}, {1, 1}},
           {{2, 1, 2}, {3, 0, 1, 2}},
           {{1, 3}, {1, 1}},
           {{9}, {2, 0}}}) {
    Bytes bytes = message_of(first);
    bytes.insert(bytes.end(), kDividerBytes, 0xff);
    const Bytes other = message_of(second);
    bytes.insert(bytes.end(), other.begin(), other.end());
    all.push_back(std::move(bytes));
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  const Bytes divider(kDividerBytes, 0xff);
  // (Not std::ranges::search: Clang 14 does not compile it with libstdc++.)
  const auto at = std::search(input.begin(), input.end(), divider.begin(), divider.end());
  const auto rest = at == input.end() ? at : at + kDividerBytes;
  const std::array<Bytes, 2> messages = {Bytes(input.begin(), at), Bytes(rest, input.end())};
  World w;
  std::map<int, Nodes> told = {{kOwn, {0}}};
  for (int second = 0; second < 9; ++second) w.clock.advance(kSecond);
  for (const int node : {0, 2}) {
    const Bytes& message = messages[node == 0 ? 0 : 1];
    const std::optional<Nodes> nodes = read(message);
    const Status heard = w.watch.heard(node, message);
    require(heard.is_ok() == nodes.has_value(), "a message is taken that is none, or one is not");
    require(heard.is_ok() || !heard.message().empty(), "refused without a reason");
    if (nodes) told[node] = *nodes;
  }
  for (int second = 0; second < 5; ++second) w.clock.advance(kSecond);
  require(w.stalls == 1, "it did not speak once");
  const auto& of = told.find(w.named_by);
  require(of != told.end() && !w.named.empty(), "it names nothing that was told");
  for (const int node : w.named) {
    require(std::ranges::find(of->second, node) != of->second.end(), "it names another node");
  }
}

}  // namespace riffle::fuzz
