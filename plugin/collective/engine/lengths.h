// Lengths: how many elements of an all-reduce mean something, as all nodes agree.
//
// NCCL hands over full chunks: 32 KiB for an all-reduce of 4 bytes, the rest stale memory. A node
// that knows the call's identity (plugin/identity/identity.h) knows its true length, a node that
// does not must not guess: all have to cut the call alike. Identities are right or not sure, so
// those who know have the same number; a node that does not know asks the others before the call's
// first chunk begins, and takes the number of any node that knows. Only if none does, the call runs
// in full, and every node has heard so from every other. So a call costs no message where all nodes
// know, needs no repeating sequence, and one node in the dark costs one round trip.
//
// Calls that no node knows (a captured CUDA graph, say) in a row: after kPatience of them no node
// asks for a while, which doubles each time. All nodes count them alike.
//
// Why asking cannot deadlock: a question about a chunk is answered when the other node comes to
// that chunk, known or not, which takes earlier chunks only. At least one element always counts, so
// that no node can end a call that another one has not begun, and no node that is asked has
// forgotten.
//
// Threads: the engine's. Allocates in the constructor only.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/collective/engine/operation.h"
#include "plugin/collective/engine/wire.h"
#include "plugin/transport/base/frame_sink.h"
#include "topology/base/status.h"

namespace riffle {

class Mesh;

class Lengths {
 public:
  static constexpr int kPatience = 8;
  static constexpr std::uint64_t kShortestPause = 64, kLongestPause = 4096;  // calls

  explicit Lengths(Mesh* mesh);

  // From the next operation on; the same on all nodes. Off, every call is as long as posted.
  void use(bool is_on) { is_on_ = is_on; }

  // Chunk `seq` is the next to begin and belongs to `operation`. True: the operation's `length` is
  // known; false: the others were asked, call again when arrived() or something else has come.
  bool find(Operation* operation, std::uint64_t seq);

  // `running`: the operation of the chunk that it names if that one runs
  // here, else null; `next_seq`: the next chunk to begin. An error if the peer's answer does not
  // fit the call.
  Status arrived(int peer, const LengthFrame& frame, const Operation* running,
                 std::uint64_t next_seq);

  // The operations have ended; nothing waits.
  void clear();

  // Whose answer this node waits for.
  std::vector<int> unanswered() const;

  std::uint64_t asked() const { return asked_; }  // calls that this node asked about

 private:
  static constexpr std::uint64_t kNone = ~0ull;

  bool is_of_interest(const Operation& operation) const;
  bool ask(Operation* operation, std::uint64_t seq);
  void settle(Operation* operation, std::uint64_t length);
  void answer_all(std::uint64_t seq, const Operation& operation);
  void send(int peer, LengthFrame::Kind kind, std::uint64_t seq, std::uint64_t length);

  Mesh* const mesh_;
  bool is_on_ = false;
  // Questions of others about chunks that have not begun here; a peer has one at a time.
  std::vector<std::uint64_t> question_of_;
  int questions_ = 0;
  // Our own.
  std::uint64_t waits_for_ = kNone;  // the chunk
  std::uint64_t waiting_count_ = 0;  // elements of its operation, as posted
  std::uint64_t found_ = Operation::kUnknown;
  std::vector<bool> has_answered_;
  int answers_missing_ = 0;
  // Of calls that no node knew.
  int in_a_row_ = 0;
  std::uint64_t pause_ = kShortestPause, calls_to_skip_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace riffle
