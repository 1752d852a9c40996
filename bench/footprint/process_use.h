// What this process has of the machine, as the kernel and the allocator count it.
//
// No state; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace riffle::bench {

struct ProcessUse {
  std::int64_t connections = 0;  // over TCP; sockets that listen are none
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
  std::int64_t private_kib = 0;    // pages that no other process shares
  std::int64_t heap_kib = 0;       // ... of them, given out by malloc and not given back
  std::int64_t idle_us_per_s = 0;  // processor time while nothing runs; only where it was measured
};

struct UseField {
  const char* name;
  std::int64_t ProcessUse::*value;
};
inline constexpr std::array<UseField, 6> kUseFields = {{
    {"connections", &ProcessUse::connections},
    {"descriptors", &ProcessUse::descriptors},
    {"threads", &ProcessUse::threads},
    {"private_kib", &ProcessUse::private_kib},
    {"heap_kib", &ProcessUse::heap_kib},
    {"idle_us_per_s", &ProcessUse::idle_us_per_s},
}};

ProcessUse process_use();
std::int64_t processor_us();  // so far, of all threads
ProcessUse operator-(const ProcessUse& a, const ProcessUse& b);

}  // namespace riffle::bench
