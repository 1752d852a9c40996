// One message: a bag of sparse blocks. Little-endian, self-delimiting, no padding:
//
//   u32 magic, u8 version, u8 value type, u16 step, u32 sequence, u32 blocks     16 bytes
//   for each block: u32 label, u32 count; the top bit of count says "dense"       8 bytes each
//   for each block: count indices, strictly ascending, then count values
//                   dense: no indices, one value for every element, count of them not zero
//
// Indices are u16 in blocks of up to 65536 elements. In longer ones they are u32, or, where that is
// shorter, a u32 for each 65536 elements, how many indices lie there, then the low halves of all
// indices. Values are float32 or bfloat16. A block goes dense where that is fewer bytes. No entry
// is zero. The reader trusts nothing: sizes, order and range are checked before any entry is used,
// and a reader that refuses says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sparse/element.h"
#include "sparse/entries.h"
#include "topology/base/status.h"

namespace riffle::sparse {

inline constexpr std::size_t kMessageHeaderBytes = 16;
inline constexpr std::size_t kBlockHeaderBytes = 8;

struct MessageKind {                   // both ends know it beforehand
  Element values = Element::kFloat32;  // or kBfloat16
  std::uint16_t step = 0;
  std::uint32_t sequence = 0;
  bool operator==(const MessageKind&) const = default;
};

// What a block is called in this message (schedule.h) and how many elements it has.
struct BlockShape {
  std::uint32_t label = 0;
  std::uint64_t elements = 0;
};

std::size_t index_bytes(std::uint64_t elements, std::uint64_t count);
// Whether `count` entries of a block take fewer bytes dense.
bool is_dense_shorter(std::uint64_t elements, std::uint64_t count, Element values);
std::size_t block_bytes(std::uint64_t elements, std::uint64_t count, Element values);

// Writes a message into a buffer that it keeps; for kBfloat16 the values must be bfloat16 already
// (rounded_to_bfloat16), so that what is sent is what the sender believes it sent.
class MessageWriter {
 public:
  void begin(const MessageKind& kind, std::size_t blocks);
  void add(const BlockShape& shape, const Entries& entries);  // ascending, in range, never zero
  std::span<const std::uint8_t> bytes();                      // all announced blocks were added

 private:
  MessageKind kind_;
  std::size_t announced_ = 0, added_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> payload_;
};

// Fills entries[i] with the block that expected[i] describes; kRemote with what is wrong, and then
// the entries mean nothing.
Status read_message(std::span<const std::uint8_t> bytes, const MessageKind& kind,
                    std::span<const BlockShape> expected, std::span<Entries> entries);

}  // namespace riffle::sparse
