// One of everything that nodes send, with content that never changes and no two fields alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/compat/records.h"

namespace riffle::compat {

struct Sample {
  std::string name;
  Bytes written;  // by this code
  // Reads what was recorded and writes it again; empty: refused. Null: read while it was made.
  std::function<Bytes(const Bytes&)> reread;
};
using Samples = std::vector<Sample>;

Samples frame_samples();
Samples message_samples();   // that are plain values
Samples protocol_samples();  // that only running agreements make
Samples sparse_samples();

inline Named written(const Samples& samples) {
  Named all;
  for (const Sample& s : samples) all.emplace_back(s.name, s.written);
  return all;
}

}  // namespace riffle::compat
