// The peer of `riffle probe`: what runs on every host (`riffle probe --peer`), told what to do by
// lines of text (crew.h) on whatever the launcher connects it to.
//
//   peer         hello {"version", "host", "handle"}      once before every attempt
//   coordinator  go {"rank", "handles", "timeout_ms"}
//   peer         found {findings}   node 0; the others: done
//                failed SENTENCE    then hello again
//
// It ends when its input ends, also in the middle of a measurement, and when nothing comes for
// kPeerPatienceMs, so that nothing stays behind whatever becomes of the coordinator.
#pragma once

#include <string>
#include <vector>

#include "plugin/transport/base/handle.h"
#include "topology/base/status.h"

namespace riffle::tools {

inline constexpr int kPeerPatienceMs = 15 * 60 * 1000;
inline constexpr int kMostTimeoutMs = 600'000;

struct PeerHello {
  std::string version, host, handle;
};
struct PeerOrder {
  int rank = 0;
  int timeout_ms = 0;
  std::vector<std::string> handles;
};

std::string to_line(const PeerHello& hello);
std::string to_line(const PeerOrder& order);
// Of a line without its prefix. Errors say what is wrong with it.
Result<PeerHello> hello_from_line(const std::string& line);
Result<PeerOrder> order_from_line(const std::string& line);

std::string to_hex(const Handle& handle);
Result<Handle> handle_from_hex(const std::string& text);

// Writes the line with its prefix. False: the other end is closed.
bool say(int out, const std::string& line);

// Serves until `in` ends; the exit code of the process.
int serve_probe(int in, int out);

}  // namespace riffle::tools
