// SharedLinks: the links of one reactor that further communicators may join, and the communicators
// (meshes) that peers may ask for. So a process has one link to each other one, whatever the number
// of communicators they have in common.
//
// Only links that are up at both ends are shared. One that is coming is worth waiting a moment for,
// as communicators are often created at once, but no more: where two threads create them in
// different orders, neither may need the other's. Two links to one process are no fault. An ask
// that comes before this side's communicator wants the peer waits here, kMostWaiting of one link;
// it ends with its link, or when the asker withdraws it, at RIFFLE_CONNECT_TIMEOUT at the latest.
//
// Both ends must have one reactor (RIFFLE_THREADS=1): an ask comes on the thread of its link.
//
// Reactor thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugin/transport/base/encryption.h"
#include "plugin/transport/device/nic_traffic.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/join_frames.h"

namespace riffle {

class TcpLink;

// What two communicators must have in common to share a link.
struct LinkTerms {
  std::uint64_t process = 0;  // the peer's (process_mark.h)
  std::uint64_t peer_timeout_ns = 0;
  bool payload_crc = false;
  std::string congestion;
  std::shared_ptr<NicTraffic> nics;  // of this side
  EncryptionOptions encryption;
};
bool are_same(const LinkTerms& a, const LinkTerms& b);

class SharedLinks {
 public:
  static constexpr std::size_t kMostWaiting = 64;

  enum class Verdict { kTaken, kRefused, kTooEarly };
  class Mesh {
   public:
    virtual ~Mesh() = default;
    // Taken: it has answered, and has a channel of the link.
    virtual Verdict join(TcpLink& link, const JoinFrame& ask) = 0;
  };

  // The reactor's; made by the first and gone with the last that holds it.
  static std::shared_ptr<SharedLinks> of(Reactor& reactor);

  void add(TcpLink& link) { links_.push_back(&link); }
  void remove(TcpLink& link);
  // A node of this process connects to another one, for as long as this lives.
  class Coming {
   public:
    Coming(std::shared_ptr<SharedLinks> among, std::uint64_t process);
    ~Coming();
    Coming(const Coming&) = delete;
    Coming& operator=(const Coming&) = delete;

   private:
    const std::shared_ptr<SharedLinks> among_;
    const std::uint64_t process_;
  };
  // Will there soon be a link to this process that may be joined? On which terms is not known yet.
  bool is_coming(std::uint64_t process) const;
  // One that is up, on these terms, with so many streams at its begin, and not yet of this
  // communicator; null: none.
  std::shared_ptr<TcpLink> find(const LinkTerms& terms, std::size_t streams,
                                std::uint64_t communicator) const;

  void add(std::uint64_t communicator, int rank, Mesh& mesh);
  void remove(Mesh& mesh);  // refuses what waits for it
  // The mesh wants this peer from now on: answers what has waited.
  void wants(Mesh& mesh, int peer);

  // A peer asks over a link. False: to be refused.
  bool asked(TcpLink& link, std::uint64_t communicator, const JoinFrame& ask);
  void withdrawn(const TcpLink& link, std::uint64_t communicator);

 private:
  struct Entry {
    std::uint64_t communicator;
    std::uint32_t rank;
    Mesh* mesh;
  };
  struct Waiting {
    TcpLink* link;
    std::uint64_t communicator;
    JoinFrame ask;
  };

  // The next that waits for this mesh, from this peer or any.
  std::optional<Waiting> take_waiting(const Entry& of, std::optional<int> peer);
  static void refuse(const Waiting& w);

  std::vector<TcpLink*> links_;
  std::unordered_map<std::uint64_t, int> coming_;  // by process, how often
  std::vector<Entry> meshes_;
  std::vector<Waiting> waiting_;
};

}  // namespace riffle
