#include "sparse/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "sparse/layout.h"
#include "topology/base/check.h"

namespace riffle::sparse {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire form is written as it lies");

constexpr std::uint32_t kMagic = 0x50535252;  // "RRSP"
constexpr std::uint8_t kVersion = 2;
constexpr std::uint32_t kDenseBit = 0x80000000;

template <class T>
T read_at(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void put(std::vector<std::uint8_t>& to, T value) {
  const std::size_t end = to.size();
  to.resize(end + sizeof value);
  std::memcpy(&to[end], &value, sizeof value);
}

void put_values(std::vector<std::uint8_t>& to, std::span<const float> values, Element type) {
  const std::size_t end = to.size();
  to.resize(end + values.size() * size_of(type));
  if (type == Element::kFloat32) {
    if (!values.empty()) std::memcpy(&to[end], values.data(), values.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) store(&to[end], type, i, values[i]);
}

template <class T>
void put_indices(std::vector<std::uint8_t>& to, std::span<const std::uint32_t> indices) {
  const std::size_t end = to.size();
  to.resize(end + indices.size() * sizeof(T));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto narrow = static_cast<T>(indices[i]);
    std::memcpy(&to[end + i * sizeof(T)], &narrow, sizeof narrow);
  }
}

std::string numbers(const char* what, std::uint64_t is, const std::string& expected) {
  return std::string(what) + " is " + std::to_string(is) + ", expected " + expected;
}

// Indices of elements first..end - 1, written from `first` on. Empty if all is well.
template <class T>
std::string read_indices(const std::uint8_t* from, std::size_t count, std::uint64_t first,
                         std::uint64_t end, std::uint32_t* to) {
  std::int64_t before = static_cast<std::int64_t>(first) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + read_at<T>(from + i * sizeof(T));
    if (static_cast<std::int64_t>(index) <= before) {
      return numbers("an index", index, "above the one before, " + std::to_string(before));
    }
    if (index >= end) return numbers("an index", index, "below " + std::to_string(end));
    before = static_cast<std::int64_t>(index);
    to[i] = static_cast<std::uint32_t>(index);
  }
  return {};
}

// Runs of the elements that two bytes tell apart.
std::uint64_t runs_of(std::uint64_t elements) {
  return (elements + kShortIndexElements - 1) / kShortIndexElements;
}

bool goes_in_runs(std::uint64_t elements, std::uint64_t count) {
  return elements > kShortIndexElements && runs_of(elements) * sizeof(std::uint32_t) < 2 * count;
}

void put_runs(std::vector<std::uint8_t>& to, std::uint64_t elements,
              std::span<const std::uint32_t> indices) {
  auto at = indices.begin();
  for (std::uint64_t run = 1; run <= runs_of(elements); ++run) {
    const auto end = std::lower_bound(at, indices.end(), run * kShortIndexElements);
    put(to, static_cast<std::uint32_t>(end - at));
    at = end;
  }
  put_indices<std::uint16_t>(to, indices);
}

std::string read_runs(const std::uint8_t* from, std::uint64_t elements, Entries& entries) {
  const std::uint64_t runs = runs_of(elements);
  const std::uint8_t* halves = from + runs * sizeof(std::uint32_t);
  std::size_t done = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const auto count = read_at<std::uint32_t>(from + run * sizeof(std::uint32_t));
    const std::size_t left = entries.count() - done;
    if (count > left) return numbers("a run's count", count, "up to " + std::to_string(left));
    const std::uint64_t first = run * kShortIndexElements;
    std::string wrong = read_indices<std::uint16_t>(
        halves + done * sizeof(std::uint16_t), count, first,
        std::min(first + kShortIndexElements, elements), entries.raw_indices() + done);
    if (!wrong.empty()) return wrong;
    done += count;
  }
  return done == entries.count()
             ? std::string()
             : numbers("the sum of its runs", done, std::to_string(entries.count()));
}

std::string read_sparse(const std::uint8_t* from, const BlockShape& shape, Element type,
                        std::size_t count, Entries& entries) {
  entries.make_room(count);
  entries.set_count(count);
  std::uint32_t* const to = entries.raw_indices();
  std::string wrong;
  if (shape.elements <= kShortIndexElements) {
    wrong = read_indices<std::uint16_t>(from, count, 0, shape.elements, to);
  } else if (goes_in_runs(shape.elements, count)) {
    wrong = read_runs(from, shape.elements, entries);
  } else {
    wrong = read_indices<std::uint32_t>(from, count, 0, shape.elements, to);
  }
  if (!wrong.empty()) return wrong;
  from += index_bytes(shape.elements, count);
  float* values = entries.raw_values();
  if (type == Element::kFloat32) {
    if (count > 0) std::memcpy(values, from, count * sizeof(float));
  } else {
    for (std::size_t i = 0; i < count; ++i) values[i] = load(from, type, i);
  }
  const auto zero = std::find(values, values + count, 0.0F);
  if (zero == values + count) return {};
  return "the value of index " + std::to_string(entries.indices()[zero - values]) + " is zero";
}

std::string read_dense(const std::uint8_t* from, const BlockShape& shape, Element type,
                       std::size_t count, Entries& entries) {
  entries.make_room(count);
  entries.clear();
  std::size_t found = 0;
  for (std::uint64_t i = 0; i < shape.elements; ++i) {
    const float v = load(from, type, i);
    if (v == 0) continue;
    if (++found <= count) entries.append(static_cast<std::uint32_t>(i), v);
  }
  return found == count ? std::string()
                        : numbers("the number of values that are not zero", found,
                                  std::to_string(count) + " as announced");
}

// The header, and that the announced sizes add up to what came. Empty if all is well.
std::string check_frame(std::span<const std::uint8_t> bytes, const MessageKind& kind,
                        std::span<const BlockShape> expected) {
  const std::size_t headers = kMessageHeaderBytes + expected.size() * kBlockHeaderBytes;
  if (bytes.size() < headers) {
    return numbers("its length", bytes.size(), "at least " + std::to_string(headers));
  }
  const std::uint8_t* at = bytes.data();
  const auto wrong = [](const char* what, std::uint64_t is, std::uint64_t expected_value) {
    return is == expected_value ? std::string() : numbers(what, is, std::to_string(expected_value));
  };
  for (const std::string& problem :
       {wrong("its magic number", read_at<std::uint32_t>(at), kMagic),
        wrong("its version", at[4], kVersion),
        wrong("its value type", at[5], static_cast<std::uint64_t>(kind.values)),
        wrong("its step", read_at<std::uint16_t>(at + 6), kind.step),
        wrong("its sequence number", read_at<std::uint32_t>(at + 8), kind.sequence),
        wrong("its number of blocks", read_at<std::uint32_t>(at + 12), expected.size())}) {
    if (!problem.empty()) return problem;
  }
  std::uint64_t total = headers;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::uint8_t* header = at + kMessageHeaderBytes + i * kBlockHeaderBytes;
    const auto label = read_at<std::uint32_t>(header);
    const std::uint32_t count = read_at<std::uint32_t>(header + 4) & ~kDenseBit;
    const bool is_dense = (read_at<std::uint32_t>(header + 4) & kDenseBit) != 0;
    if (label != expected[i].label) return wrong("a block's label", label, expected[i].label);
    if (count > expected[i].elements) {
      return numbers("a block's count", count, "up to " + std::to_string(expected[i].elements));
    }
    if (is_dense != is_dense_shorter(expected[i].elements, count, kind.values)) {
      return "block " + std::to_string(label) + " is not in the shorter form";
    }
    total += block_bytes(expected[i].elements, count, kind.values);
  }
  return wrong("its length", bytes.size(), total);
}

}  // namespace

std::size_t index_bytes(std::uint64_t elements, std::uint64_t count) {
  if (elements <= kShortIndexElements) return 2 * count;
  return goes_in_runs(elements, count) ? 4 * runs_of(elements) + 2 * count : 4 * count;
}

bool is_dense_shorter(std::uint64_t elements, std::uint64_t count, Element values) {
  return elements * size_of(values) < index_bytes(elements, count) + count * size_of(values);
}

std::size_t block_bytes(std::uint64_t elements, std::uint64_t count, Element values) {
  return is_dense_shorter(elements, count, values)
             ? elements * size_of(values)
             : index_bytes(elements, count) + count * size_of(values);
}

void MessageWriter::begin(const MessageKind& kind, std::size_t blocks) {
  kind_ = kind;
  announced_ = blocks;
  added_ = 0;
  payload_.clear();
  bytes_.clear();
  put(bytes_, kMagic);
  put(bytes_, kVersion);
  put(bytes_, static_cast<std::uint8_t>(kind.values));
  put(bytes_, kind.step);
  put(bytes_, kind.sequence);
  put(bytes_, static_cast<std::uint32_t>(blocks));
}

void MessageWriter::add(const BlockShape& shape, const Entries& entries) {
  RIFFLE_CHECK(added_++ < announced_, "more blocks than announced");
  const bool is_dense = is_dense_shorter(shape.elements, entries.count(), kind_.values);
  put(bytes_, shape.label);
  put(bytes_, static_cast<std::uint32_t>(entries.count()) | (is_dense ? kDenseBit : 0));
  if (!is_dense) {
    if (shape.elements <= kShortIndexElements) {
      put_indices<std::uint16_t>(payload_, entries.indices());
    } else if (goes_in_runs(shape.elements, entries.count())) {
      put_runs(payload_, shape.elements, entries.indices());
    } else {
      put_indices<std::uint32_t>(payload_, entries.indices());
    }
    put_values(payload_, entries.values(), kind_.values);
    return;
  }
  const std::size_t end = payload_.size();
  payload_.resize(end + shape.elements * size_of(kind_.values));  // zeros
  for (std::size_t i = 0; i < entries.count(); ++i) {
    store(&payload_[end], kind_.values, entries.indices()[i], entries.values()[i]);
  }
}

std::span<const std::uint8_t> MessageWriter::bytes() {
  RIFFLE_CHECK(added_ == announced_, "fewer blocks than announced");
  if (!payload_.empty()) {
    bytes_.insert(bytes_.end(), payload_.begin(), payload_.end());
    payload_.clear();
  }
  return bytes_;
}

Status read_message(std::span<const std::uint8_t> bytes, const MessageKind& kind,
                    std::span<const BlockShape> expected, std::span<Entries> entries) {
  RIFFLE_CHECK(entries.size() == expected.size(), "one place for every expected block");
  if (const std::string wrong = check_frame(bytes, kind, expected); !wrong.empty()) {
    return remote_error("sparse message: " + wrong);
  }
  const std::uint8_t* payload =
      bytes.data() + kMessageHeaderBytes + expected.size() * kBlockHeaderBytes;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::uint8_t* header = bytes.data() + kMessageHeaderBytes + i * kBlockHeaderBytes;
    const std::size_t count = read_at<std::uint32_t>(header + 4) & ~kDenseBit;
    const BlockShape& shape = expected[i];
    const std::string wrong = is_dense_shorter(shape.elements, count, kind.values)
                                  ? read_dense(payload, shape, kind.values, count, entries[i])
                                  : read_sparse(payload, shape, kind.values, count, entries[i]);
    if (!wrong.empty()) {
      return remote_error("sparse message, block " + std::to_string(shape.label) + ": " + wrong);
    }
    payload += block_bytes(shape.elements, count, kind.values);
  }
  return Status::ok();
}

}  // namespace riffle::sparse
