// The log of faults between nodes. When a peer dies, every connection to it breaks within moments,
// and those of its neighbours after that; the first line says all there is to know. So only the
// first fault of an incident is a warning; the others, up to 10 s after the last one, are lines at
// INFO. An incident belongs to the process: one clear line per rank. A verdict on this node itself
// is always a warning: a node that is excluded sees the others' connections break first, and that
// is not why its job ends. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace riffle {

inline constexpr std::uint64_t kIncidentNs = 10'000'000'000;

void log_fault(const std::string& line, bool is_verdict = false);
void end_incident();  // the next fault is a first one again; for tests

}  // namespace riffle
