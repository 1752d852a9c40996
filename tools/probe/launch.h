// Where a process of `srun riffle probe`, `mpirun riffle probe` or `torchrun ... riffle probe`
// stands: its place among the others, and where they meet. Read from the launcher's environment
// variables; pure but for those.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/handle.h"
#include "topology/base/status.h"

namespace riffle::tools {

using Environment = std::function<const char*(const char* name)>;  // getenv

// Where rank 0 waits for the others.
struct MeetingPoint {
  std::vector<std::string> hosts;  // names or addresses, tried in turn; empty: not told
  int port = 0;
  Secret secret{};
};

struct Launch {
  int rank = 0, size = 0;
  std::string launcher;  // "Slurm", for messages
  MeetingPoint meeting;
};

inline constexpr int kMostHosts = 1024;

// None: this process was started alone. `rendezvous`: HOST:PORT as the user gave it, or empty. The
// secret comes from RIFFLE_PROBE_SECRET, else from what tells this launch from others: that keeps
// out who comes by mistake, not who reads the job's numbers.
Result<std::optional<Launch>> find_launch(const Environment& environment,
                                          const std::string& rendezvous);

// "HOST:PORT", "[ADDRESS]:PORT".
Status parse_place(const std::string& text, std::string* host, int* port);

// A meeting point as one word, for a launcher that carries it from rank 0 to the others.
std::string to_word(const MeetingPoint& meeting);
Result<MeetingPoint> meeting_from_word(const std::string& word);

}  // namespace riffle::tools
