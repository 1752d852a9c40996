#include "tools/probe/gathering.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

#include "plugin/entry/options.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/device/device.h"
#include "plugin/transport/reactor/open_files.h"
#include "tools/env/quoting.h"
#include "tools/probe/launch.h"
#include "tools/probe/pmix.h"
#include "tools/probe/rendezvous.h"

namespace riffle::tools {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string this_command() {
  std::error_code none;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", none);
  return none ? "riffle" : path.string();
}

// Settings are those of the user's shell, as with a job.
std::vector<std::string> settings(const PeerCommand& peer) {
  std::vector<std::string> found;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    // ssh makes a shell's line of its arguments
    if (peer.takes(entry.substr(0, entry.find('=')))) found.push_back(sh_word(entry));
  }
  return found;
}

Status check_hosts(const std::vector<std::string>& hosts) {
  if (hosts.size() < 2 || hosts.size() > kMostHosts) {
    return invalid_argument("2 to " + std::to_string(kMostHosts) + " hosts are accepted, not " +
                            std::to_string(hosts.size()));
  }
  std::set<std::string> seen;
  for (const std::string& host : hosts) {
    const bool is_word = host.find_first_of(" \t\r\n'\"\\;&|<>$`") == std::string::npos;
    if (host.empty() || host[0] == '-' || !is_word) {
      return invalid_argument("'" + host + "' is no host name");
    }
    if (!seen.insert(host).second) return invalid_argument("host " + host + " is named twice");
  }
  return Status::ok();
}

Status launch_peers(const Gathering& options, const PeerCommand& peer, Crew& crew) {
  if (Status s = check_hosts(options.hosts); !s) return s;
  std::vector<std::string> launcher = words_of(options.ssh);
  if (launcher.empty()) return invalid_argument("--ssh: a command is missing");
  if (options.ssh.find("%h") == std::string::npos) launcher.push_back("%h");
  std::vector<std::string> command = settings(peer);
  if (!command.empty()) command.insert(command.begin(), "env");
  command.push_back(sh_word(options.riffle.empty() ? this_command() : options.riffle));
  std::ranges::transform(peer.words, std::back_inserter(command), sh_word);
  for (const std::string& host : options.hosts) crew.launch(host, launcher, command);
  return Status::ok();
}

// Where nothing in the environment says where to meet, the launcher's PMIx server does.
Status meet_by_pmix(const Gathering& options, Launch& launch) {
  if (launch.rank == 0) {
    fill_random(launch.meeting.secret.data(), launch.meeting.secret.size());
    const auto& found = devices(options_from(config()).transport.devices);
    if (!found) return found.status();
    for (const NicAddress& a : (*found)[0].addresses) {
      launch.meeting.hosts.push_back(
          a.is_ipv6 && a.scope_id != 0 ? a.address + "%" + a.interface : a.address);
    }
  }
  alarm(static_cast<unsigned>(options.timeout_s) + 5);  // should the launcher's server not answer
  const Result<std::string> word = share_by_pmix(
      launch.rank, launch.rank == 0 ? to_word(launch.meeting) : "", options.timeout_s);
  alarm(0);
  if (!word) {
    return remote_error("started by " + launch.launcher + ", but nothing says where rank 0 is (" +
                        word.status().message() +
                        "): give --rendezvous HOST:PORT, rank 0's host "
                        "and a free port");
  }
  Result<MeetingPoint> meeting = meeting_from_word(*word);
  if (!meeting) return meeting.status();
  launch.meeting = std::move(*meeting);
  return Status::ok();
}

}  // namespace

Result<Gathered> gather(const Gathering& options, const PeerCommand& peer, Crew& crew) {
  raise_open_files();  // some for each host
  if (!options.hosts.empty()) {
    if (const Status s = launch_peers(options, peer, crew); !s) return s;
    return Gathered{Gathered::Role::kOverSsh, Fd()};
  }
  Result<std::optional<Launch>> found =
      find_launch([](const char* name) { return std::getenv(name); }, options.rendezvous);
  if (!found) return found.status();
  if (!found->has_value()) return Gathered();
  Launch& launch = **found;
  Fd door;
  if (launch.rank == 0) {
    Result<Fd> opened = open_door(&launch.meeting.port);
    if (!opened) return opened.status();
    door = std::move(*opened);
  }
  if (launch.meeting.hosts.empty()) {
    if (const Status s = meet_by_pmix(options, launch); !s) return s;
  }
  if (launch.rank > 0) {
    Result<Fd> road = go_to(launch.meeting, launch.rank, options.timeout_ms());
    if (!road) return road.status();
    return Gathered{Gathered::Role::kPeer, std::move(*road)};
  }
  // Rank 0's own peer is a child, as ssh's would be.
  std::vector<std::string> command = {this_command()};
  command.insert(command.end(), peer.words.begin(), peer.words.end());
  crew.launch("rank 0", {}, command);
  let_in(door, launch.meeting.secret, launch.size, options.timeout_ms(), crew);
  return Gathered{Gathered::Role::kRankZero, Fd()};
}

}  // namespace riffle::tools
