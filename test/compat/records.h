// Bytes that a release sends, as text: a name, and below it, indented, its bytes in hex. A line
// that begins with # is a comment.
//
// One folder per wire version: frames.hex and messages.hex hold for all releases of it,
// handshake-RELEASE.hex for one, as handles and handshakes name the release. A file is written once
// and never changed: RIFFLE_TEST_UPDATE=1 writes those that this version lacks, and no other.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugin/transport/base/frame.h"
#include "test/hex.h"

namespace riffle::compat {

using Bytes = std::vector<std::uint8_t>;
using Named = std::vector<std::pair<std::string, Bytes>>;

template <class Range>
Bytes bytes_of(const Range& range) {
  return Bytes(range.begin(), range.end());
}
inline std::string hex_of(const Bytes& bytes) {
  return riffle::hex_of(std::as_bytes(std::span(bytes)));
}

inline std::filesystem::path record_of(int wire_version, const std::string& name) {
  return std::filesystem::path(RIFFLE_RECORDS) / ("wire-" + std::to_string(wire_version)) /
         (name + ".hex");
}

class Records {
 public:
  explicit Records(const std::filesystem::path& file) : file_(file) {
    std::ifstream in(file);
    EXPECT_TRUE(in) << file << " is missing: RIFFLE_TEST_UPDATE=1 writes it (CONTRIBUTING.md)";
    std::string name;
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] != ' ') {
        name = line;
        bytes_[name];
        continue;
      }
      for (const std::byte b : bytes_of_hex(line.substr(line.find_first_not_of(' ')))) {
        bytes_[name].push_back(std::to_integer<std::uint8_t>(b));
      }
    }
  }

  const Bytes& at(const std::string& name) const {
    static const Bytes none;
    const auto it = bytes_.find(name);
    EXPECT_NE(it, bytes_.end()) << file_ << " has no " << name;
    return it == bytes_.end() ? none : it->second;
  }
  // What does not come as long as it must is filled up with zeros, and fails the test.
  template <class Array>
  Array array(const std::string& name) const {
    Array out{};
    const Bytes& bytes = at(name);
    EXPECT_EQ(bytes.size(), out.size()) << file_ << ": " << name;
    std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
    return out;
  }
  const std::map<std::string, Bytes>& all() const { return bytes_; }

 private:
  std::filesystem::path file_;
  std::map<std::string, Bytes> bytes_;
};

// The records of today's wire version; `make` tells what they are if there are none yet.
template <class Make>
Records records_of_today(const std::string& name, Make make) {
  const std::filesystem::path file = record_of(kFrameVersion, name);
  if (!std::filesystem::exists(file) && std::getenv("RIFFLE_TEST_UPDATE") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file);
    out << "# Written by Riffle.\n";
    constexpr std::size_t kDigits = 88;  // on a line
    for (const auto& [entry, bytes] : Named(make())) {
      out << entry << "\n";
      const std::string hex = hex_of(bytes);
      for (std::size_t at = 0; at < hex.size(); at += kDigits) {
        out << "  " << hex.substr(at, kDigits) << "\n";
      }
    }
  }
  return Records(file);
}

}  // namespace riffle::compat
