#include "tools/probe/launch.h"

#include <sodium.h>

#include <array>
#include <charconv>
#include <sstream>

#include "topology/fabric/hostlist.h"

namespace riffle::tools {
namespace {

constexpr int kFirstPort = 20'000, kPorts = 10'000;  // below the ports that kernels hand out

std::string value_of(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value != nullptr ? value : "";
}

// The whole text as a number.
std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Source {
  const char* launcher;
  const char* rank;
  const char* size;
};
// The innermost launcher first: mpirun runs in Slurm's jobs, not the other way round.
constexpr std::array<Source, 4> kSources = {{
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
    // SLURM_NTASKS is set in batch scripts, too, which are one process.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}};

Secret hashed(const std::string& text) {
  Secret secret;
  crypto_generichash(secret.data(), secret.size(),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  return secret;
}

// What tells this launch from others, equal in all its processes.
std::string job_of(const Environment& environment) {
  std::string job = "riffle probe";
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MASTER_ADDR",
                           "MASTER_PORT", "TORCHELASTIC_RUN_ID"}) {
    job += std::string(" ") + name + "=" + value_of(environment, name);
  }
  return job;
}

Status meet(const Environment& environment, const std::string& rendezvous, MeetingPoint* meeting) {
  const std::string job = job_of(environment);
  const std::string told = value_of(environment, "RIFFLE_PROBE_SECRET");
  meeting->secret = hashed(told.empty() ? job : told);
  if (!rendezvous.empty()) {
    meeting->hosts.resize(1);
    return parse_place(rendezvous, &meeting->hosts[0], &meeting->port);
  }
  const Secret spread = hashed(job);
  meeting->port = kFirstPort + (spread[0] << 8 | spread[1]) % kPorts;
  if (const std::string master = value_of(environment, "MASTER_ADDR"); !master.empty()) {
    meeting->hosts = {master};
    return Status::ok();
  }
  std::string nodes = value_of(environment, "SLURM_STEP_NODELIST");
  if (nodes.empty()) nodes = value_of(environment, "SLURM_JOB_NODELIST");
  if (nodes.empty()) return Status::ok();
  std::vector<std::string> names;
  if (const Status s = expand_hostlist(nodes, names); !s || names.empty()) {
    return invalid_argument("SLURM_STEP_NODELIST '" + nodes + "': " + s.message());
  }
  meeting->hosts = {names.front()};  // Slurm puts task 0 there
  return Status::ok();
}

}  // namespace

Status parse_place(const std::string& text, std::string* host, int* port) {
  const std::size_t colon = text.rfind(':');
  const int value = colon == std::string::npos ? 0 : number(text.substr(colon + 1)).value_or(0);
  std::string name = text.substr(0, colon == std::string::npos ? 0 : colon);
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  if (name.empty() || value < 1 || value > 65535) {
    return invalid_argument("'" + text +
                            "' is no meeting point: accepted are HOST:PORT and [ADDRESS]:PORT with "
                            "a port of 1 to 65535");
  }
  *host = name;
  *port = value;
  return Status::ok();
}

Result<std::optional<Launch>> find_launch(const Environment& environment,
                                          const std::string& rendezvous) {
  for (const Source& source : kSources) {
    const std::string rank = value_of(environment, source.rank);
    const std::string size = value_of(environment, source.size);
    if (rank.empty() || size.empty()) continue;
    const std::optional<int> r = number(rank), n = number(size);
    if (!n || *n < 1 || *n > kMostHosts) {
      return invalid_argument(std::string(source.size) + "=" + size + " (" + source.launcher +
                              "): accepted are 1 to " + std::to_string(kMostHosts));
    }
    if (!r || *r < 0 || *r >= *n) {
      return invalid_argument(std::string(source.rank) + "=" + rank + " (" + source.launcher +
                              "): accepted are 0 to " + source.size +
                              "-1 = " + std::to_string(*n - 1));
    }
    if (*n == 1) continue;  // such as a job's batch script: alone, as far as this launcher goes
    Launch launch{*r, *n, source.launcher, {}};
    if (const Status s = meet(environment, rendezvous, &launch.meeting); !s) return s;
    return std::optional<Launch>(std::move(launch));
  }
  return std::optional<Launch>();
}

std::string to_word(const MeetingPoint& meeting) {
  std::array<char, 2 * kSecretBytes + 1> secret{};
  sodium_bin2hex(secret.data(), secret.size(), meeting.secret.data(), meeting.secret.size());
  std::string word = std::string(secret.data()) + "/" + std::to_string(meeting.port);
  for (const std::string& host : meeting.hosts) word += "/" + host;
  return word;
}

Result<MeetingPoint> meeting_from_word(const std::string& word) {
  MeetingPoint meeting;
  std::istringstream parts(word);
  std::string secret, port;
  std::getline(parts, secret, '/');
  std::getline(parts, port, '/');
  std::size_t bytes = 0;
  const bool is_secret = sodium_hex2bin(meeting.secret.data(), meeting.secret.size(), secret.data(),
                                        secret.size(), nullptr, &bytes, nullptr) == 0 &&
                         bytes == kSecretBytes;
  for (std::string host; std::getline(parts, host, '/');) meeting.hosts.push_back(host);
  meeting.port = number(port).value_or(0);
  if (!is_secret || meeting.port < 1 || meeting.port > 65535 || meeting.hosts.empty()) {
    return remote_error("what rank 0 left at the launcher is no meeting point of riffle probe");
  }
  return meeting;
}

}  // namespace riffle::tools
