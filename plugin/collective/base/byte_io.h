// Numbers, texts and blobs to bytes and back, little-endian, for control messages. Lengths from the
// wire are never trusted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace riffle {

class ByteWriter {
 public:
  void number(std::uint64_t v) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  void texts(const std::vector<std::string>& list) {
    number(list.size());
    for (const std::string& t : list) blob(t);
  }
  template <class Bytes>
  void blob(const Bytes& b) {
    number(b.size());
    bytes_.insert(bytes_.end(), b.begin(), b.end());
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads what ByteWriter wrote; after the first impossible length everything is empty and ok() is
// false.
class ByteReader {
 public:
  explicit ByteReader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    if (bytes_.size() - at_ < 8) return fail();
    std::uint64_t v = 0;
    for (int i = 0; i < 8; ++i) v |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += 8;
    return v;
  }
  template <class Bytes>
  Bytes blob() {
    const std::uint64_t size = number();
    if (size > bytes_.size() - at_) {
      fail();
      return {};
    }
    Bytes b(bytes_.begin() + static_cast<std::ptrdiff_t>(at_),
            bytes_.begin() + static_cast<std::ptrdiff_t>(at_ + size));
    at_ += size;
    return b;
  }
  std::string text() { return blob<std::string>(); }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (std::uint64_t n = number(); n > 0 && is_ok(); --n) list.push_back(text());
    return list;
  }
  bool is_ok() const { return ok_; }
  bool is_complete() const { return ok_ && at_ == bytes_.size(); }

 private:
  std::uint64_t fail() {
    ok_ = false;
    at_ = bytes_.size();
    return 0;
  }
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace riffle
