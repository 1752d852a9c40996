// The crew of `riffle probe`: one peer process per host, and the lines of text between them and the
// coordinator. Whatever starts them (ssh, ip netns exec, pdsh-like tools) only has to carry their
// standard input and output.
//
// On the wire every line begins with "riffle-probe "; other lines (a login banner) are skipped, the
// last of them and of standard error explain why a peer did not come.
//
// One thread, which ignores SIGPIPE: a member that is gone is noticed otherwise. Every wait has a
// deadline. Peers end when their input ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::tools {

inline constexpr const char* kLinePrefix = "riffle-probe ";

class Crew {
 public:
  struct Member {
    std::string name;  // the host as the user named it
    pid_t pid = 0;     // 0: not our child
    int to = -1, from = -1, errors = -1;
    std::string received;            // not yet a line
    std::string last_words;          // of everything that is not ours
    std::string absent;              // why it takes no part; empty: it does
    std::vector<std::string> lines;  // received, oldest first, without prefix
  };

  Crew() = default;
  ~Crew();  // ends the peers: closes their input, kills what stays
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Starts `command` on the host through `launcher`, words in which %h is the host.
  void launch(const std::string& host, const std::vector<std::string>& launcher,
              const std::vector<std::string>& command);
  // A peer at the other end of a socket.
  void adopt(const std::string& name, int socket);

  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  void tell(Member& member, const std::string& line);
  // It takes no part any more: it is told so by the end of its input.
  void dismiss(Member& member, const std::string& why);
  // Until every member that takes part has a line, the deadline passes or it is gone. The line is
  // in lines.front(); members without one become absent. `doing`: for who waits at a terminal.
  void hear_all(int deadline_ms, const std::string& doing);

 private:
  void take(Member& member, int fd);
  void lost(Member& member, const std::string& why);

  std::vector<Member> members_;
};

}  // namespace riffle::tools
