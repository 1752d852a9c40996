// A whole bench: the emulated cluster of a profile (or loopback where namespaces are not allowed),
// and one peer after the other on it. The creating thread must outlive the session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/temporary_folder.h"
#include "bench/peers/peer.h"
#include "lab/cluster/cluster.h"

namespace riffle::bench {

struct SessionOptions {
  std::string plugin;    // the shared object
  std::string programs;  // folder of the peers' programs
  bool allow_loopback = false;
  int peer_timeout_s = 60;
  bool live_fabric = false;  // no fabric file: riffle probes the network itself
  // TCP's of every socket between nodes; empty: the machine's, and riffle's own choice.
  std::string congestion;
};

// What the nodes of a peer saw after one of them was killed or stopped.
struct Loss {
  std::string kind;
  // Where the others go on (RIFFLE_ON_LOSS=continue): until the last of them had the result, and
  // how long the next all-reduce took.
  int with_result = 0;
  double last_result_s = 0, next_s = 0;
  std::size_t wrong = 0;    // elements
  double last_error_s = 0;  // until the last survivor had an error
  int survivors = 0, with_error = 0;
  std::string first_message;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const cluster::Profile& profile,
                                               const SessionOptions& options);
  // Another one on the same emulated cluster, with workers of its own beside this one's. Its
  // `plugin` is another shared object. This one must outlive it.
  Result<std::unique_ptr<Session>> open_beside(const std::string& plugin) const;
  ~Session();
  Session(const Session&) = delete;

  const Site& site() const { return site_; }
  const cluster::Profile& profile() const { return profile_; }
  // TCP's of every socket between nodes; "system": nothing was chosen for all.
  std::string congestion() const;
  // Of the running peer: Row::network.
  const std::string& network() const { return network_; }

  // Starts the peer's workers; one peer at a time.
  Status begin(const Peer& peer);
  Result<Row> ask(const Question& question, const std::function<void(int done)>& progress);
  // Does the profile's fault to the running peer in the middle of an all-reduce. `goes_on`: its
  // nodes are to go on without a lost one; else all having a result means that the fault came too
  // late, which is an error.
  Result<Loss> lose(const Question& question, const std::string& kind, bool goes_on);
  // One more all-reduce of the survivors; seconds. Counts wrong elements into `loss`.
  Result<double> go_on(const Question& question, Loss& loss);
  // Changes of the plan that the running peer has logged since the last call.
  std::vector<std::string> new_plan_changes();
  // Their number; what all nodes say counts once. -1: a peer without plans.
  int count_plan_changes();
  // The relaxed mode that riffle said it went into last; empty: none.
  std::string mode() const;
  // The last line of the peer's log, also after end(), that holds `text`; from there on.
  std::string said(const std::string& text) const;
  void end();

  // For measurements of another kind: the line to the running peer's workers, and an error with the
  // last lines of the peer's log added.
  ControlHub& hub() { return hub_; }
  Status explain(const Status& status) const;

 private:
  // On `site`, with a folder and a hub of its own.
  static Result<std::unique_ptr<Session>> make(const cluster::Profile& profile, Site site);
  Session(cluster::Profile profile, TemporaryFolder folder, ControlHub hub)
      : profile_(std::move(profile)), folder_(std::move(folder)), hub_(std::move(hub)) {}

  cluster::Profile profile_;
  TemporaryFolder folder_;
  ControlHub hub_;
  std::unique_ptr<cluster::Cluster> cluster_;  // null: another session's, or none
  Site site_;
  std::string peer_, title_, network_;
  pid_t supervisor_ = 0;
  std::size_t changes_seen_ = 0;
};

}  // namespace riffle::bench
