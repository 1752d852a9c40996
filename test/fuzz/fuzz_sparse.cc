// Sparse messages from the wire, twice: as a message alone, whose every accepted form must be the
// one the writer writes; and as the first message of an exchange, which must end with an error or
// go on unharmed. The first byte chooses the values' type, the rest is the message.
#include <algorithm>
#include <cmath>

#include "sparse/exchange.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

using namespace riffle::sparse;

constexpr std::size_t kElements = 600;  // three workers: blocks of 200

std::vector<float> gradient(std::size_t seed) {
  std::vector<float> g(kElements);
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = static_cast<float>((i * 7919 + seed * 104729) % 1009) / 64 - 8;
  }
  return g;
}

ExchangeOptions options_of(Element values) {
  return {.residual = ResidualPolicy::kGlobal, .values = values};
}

// The message that worker 0 of three awaits first: blocks 0 of worker 1's.
Bytes first_message(Element values, double density) {
  const Layout layout({3, 1, kElements, density});
  Exchange sender(layout, options_of(values), 1);
  ChunkState state(layout, 1, ResidualPolicy::kGlobal);
  sender.begin(state, gradient(1).data(), Element::kFloat32, 1);
  const auto bytes = sender.message();
  return {bytes.begin(), bytes.end()};
}

void try_message(std::span<const std::uint8_t> bytes, const MessageKind& kind,
                 std::span<const BlockShape> shapes) {
  std::vector<Entries> entries(shapes.size());
  const Status status = read_message(bytes, kind, shapes, entries);
  if (!status) {
    require(!status.message().empty(), "refused without a reason");
    return;
  }
  MessageWriter writer;
  writer.begin(kind, shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto indices = entries[i].indices();
    require(std::ranges::is_sorted(indices), "indices out of order");
    require(std::ranges::adjacent_find(indices) == indices.end(), "an index twice");
    require(indices.empty() || indices.back() < shapes[i].elements, "an index out of range");
    for (const float v : entries[i].values()) require(v != 0, "a zero");
    writer.add(shapes[i], entries[i]);
  }
  const auto again = writer.bytes();
  // NaNs of bfloat16 become one, and a dense form may hold -0; the length and the meaning stay.
  require(again.size() == bytes.size(), "another length on the way back");
  std::vector<Entries> twice(shapes.size());
  require(read_message(again, kind, shapes, twice).is_ok(), "does not survive another trip");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    require(std::ranges::equal(entries[i].indices(), twice[i].indices()), "other indices");
  }
}

void try_exchange(std::span<const std::uint8_t> bytes, Element values) {
  const Layout layout({3, 1, kElements, 0.05});
  Exchange exchange(layout, options_of(values), 0);
  ChunkState state(layout, 0, ResidualPolicy::kGlobal);
  exchange.begin(state, gradient(0).data(), Element::kFloat32, 1);
  const Status status = exchange.receive(bytes);
  require(!exchange.is_done(), "done after one of four messages");
  require(state.residual == std::vector<float>(kElements), "changed the state too early");
  if (!status) require(!status.message().empty(), "refused without a reason");
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const Element values : {Element::kFloat32, Element::kBfloat16}) {
    for (const double density : {0.01, 0.05, 0.8}) {
      Bytes seed{static_cast<std::uint8_t>(values == Element::kFloat32 ? 1 : 0)};
      const Bytes message = first_message(values, density);
      seed.insert(seed.end(), message.begin(), message.end());
      all.push_back(std::move(seed));
    }
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const Element values = input[0] % 2 == 0 ? Element::kBfloat16 : Element::kFloat32;
  const auto bytes = input.subspan(1);
  const Layout layout({3, 1, kElements, 0.05});
  const Step first = schedule(layout, Across::kGathered, 0)[0];
  std::vector<BlockShape> shapes;
  for (const int block : first.receive) {
    shapes.push_back({static_cast<std::uint32_t>(block), layout.size_of(block)});
  }
  const MessageKind kind{values, 0, 1};
  try_message(bytes, kind, shapes);
  const BlockShape wide[] = {{shapes[0].label, 100000}};  // 4-byte indices
  try_message(bytes, kind, wide);
  try_exchange(bytes, values);
}

}  // namespace riffle::fuzz
