// The welcome connections of one peer until all of them are there.
#pragma once

#include <vector>

#include "plugin/transport/handshake.h"
#include "plugin/transport/socket.h"

namespace riffle {

inline constexpr int kMaxStreams = 16;

// ok iff `hello` names one of `streams` streams (0: any sensible number).
Status check_streams(const Hello& hello, int streams);

class StreamSet {
 public:
  // Precondition: check_streams(hello). A connector that started anew has a new session; what its
  // former attempt left behind is dropped.
  void add(Fd socket, const Hello& hello);
  bool is_complete() const { return !sockets_.empty() && count_ == sockets_.size(); }
  bool is_empty() const { return count_ == 0; }
  std::uint64_t session() const { return session_; }
  std::vector<Fd> take();
  void clear();

 private:
  std::vector<Fd> sockets_;  // by stream; closed where none joined yet
  std::size_t count_ = 0;
  std::uint64_t session_ = 0;
};

}  // namespace riffle
