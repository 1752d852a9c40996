// The welcome connections of one peer until all of them are there.
#pragma once

#include <vector>

#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/handshake/handshake.h"

namespace riffle {

inline constexpr int kMaxStreams = 16;

// ok iff `hello` names one of a sensible number of streams. The connector's number counts: nodes
// whose RIFFLE_STREAMS differ must connect, so that all of them learn from the comparison of knobs
// which one differs and where.
Status check_streams(const Hello& hello);

// `wanted` (RIFFLE_STREAMS); if 0, two to each of one or two peers and one to each of more: many
// flows that share an uplink or a slow NIC get uneven parts of it, and the slowest sets the pace.
int streams_to_each_of(int peers, int wanted);

class StreamSet {
 public:
  // Precondition: check_streams(hello). A connector that started anew has a new session; what its
  // former attempt left behind is dropped, as is what came before another number of streams.
  void add(Connection connection, const Hello& hello);
  bool is_complete() const { return !connections_.empty() && count_ == connections_.size(); }
  bool is_empty() const { return count_ == 0; }
  std::uint64_t session() const { return session_; }
  std::vector<Connection> take();
  void clear();

 private:
  std::vector<Connection> connections_;  // by stream; closed where none joined yet
  std::size_t count_ = 0;
  std::uint64_t session_ = 0;
};

}  // namespace riffle
