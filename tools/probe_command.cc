// `riffle probe`: measures the network between hosts, without a job.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include "plugin/entry/options.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/device/device.h"
#include "tools/command.h"
#include "tools/env/quoting.h"
#include "tools/output_file.h"
#include "tools/probe/lead.h"
#include "tools/probe/measurement.h"
#include "tools/probe/peer.h"
#include "tools/probe/pmix.h"
#include "tools/probe/rendezvous.h"
#include "tools/terminal.h"

extern char** environ;

namespace riffle::tools {
namespace {

struct ProbeArguments {
  std::vector<std::string> hosts;
  std::string ssh = "ssh -o BatchMode=yes -o ConnectTimeout=10 -T";
  std::string riffle, rendezvous, svg, fabric;
  int timeout_s = 30;
  bool json = false, peer = false;
  int timeout_ms() const { return 1000 * timeout_s; }
};

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

// Settings that bear on the measurement are those of the user's shell, as with a job.
std::vector<std::string> settings() {
  static const std::set<std::string> of_one_host = {
      "RIFFLE_NODE_NAME",   "RIFFLE_RACK",      "RIFFLE_RECORD",      "RIFFLE_FABRIC",
      "RIFFLE_FABRIC_SAVE", "RIFFLE_CONF_FILE", "RIFFLE_PROBE_SECRET"};
  std::vector<std::string> found;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const std::string name = entry.substr(0, entry.find('='));
    if ((name.starts_with("RIFFLE_") && !of_one_host.contains(name)) ||
        name == "NCCL_SOCKET_IFNAME" || name == "NCCL_SOCKET_FAMILY") {
      found.push_back(sh_word(entry));  // ssh makes a shell's line of its arguments
    }
  }
  return found;
}

Status check_hosts(const std::vector<std::string>& hosts) {
  if (hosts.size() < 2 || hosts.size() > kMostHosts) {
    return invalid_argument("riffle probe takes 2 to " + std::to_string(kMostHosts) +
                            " hosts, not " + std::to_string(hosts.size()));
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

Status launch_peers(const ProbeArguments& options, Crew& crew) {
  if (Status s = check_hosts(options.hosts); !s) return s;
  std::vector<std::string> launcher = words_of(options.ssh);
  if (launcher.empty()) return invalid_argument("--ssh: a command is missing");
  if (options.ssh.find("%h") == std::string::npos) launcher.push_back("%h");
  std::vector<std::string> command = settings();
  if (!command.empty()) command.insert(command.begin(), "env");
  command.push_back(sh_word(options.riffle.empty() ? this_command() : options.riffle));
  command.insert(command.end(), {"probe", "--peer"});
  for (const std::string& host : options.hosts) crew.launch(host, launcher, command);
  return Status::ok();
}

// Rank 0 of a launch: its own peer is a child, as ssh's would be.
Status gather_peers(const ProbeArguments& options, const Launch& launch, const Fd& door,
                    Crew& crew) {
  crew.launch("rank 0", {}, {this_command(), "probe", "--peer"});
  let_in(door, launch.meeting.secret, launch.size, options.timeout_ms(), crew);
  return Status::ok();
}

// Where nothing in the environment says where to meet, the launcher's PMIx server does.
Status meet_by_pmix(const ProbeArguments& options, Launch& launch) {
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

int show(const ProbeArguments& options, const ProbeFindings& found) {
  const std::string text = options.json ? to_json(found) + "\n" : to_text(found, Colours(stdout));
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  int code = found.absent.empty() ? 0 : kFailed;
  const auto put = [&](const std::string& path, const std::string& content) {
    if (path.empty()) return;
    if (const Status s = write_file(path, content); !s) code = report(s);
  };
  put(options.svg, options.svg.empty() ? "" : to_svg(found));
  put(options.fabric, "# found by riffle probe; racks and uplinks are inferred\n" + found.toml);
  return code;
}

int run(const ProbeArguments& options) {
  signal(SIGPIPE, SIG_IGN);
  setenv("RIFFLE_LOG", "warn", 0);
  unsetenv("RIFFLE_FABRIC");  // what is to be found
  if (options.peer) return serve_probe(STDIN_FILENO, STDOUT_FILENO);
  Crew crew;
  Fd door;
  bool is_launch = false;
  if (!options.hosts.empty()) {
    if (const Status s = launch_peers(options, crew); !s) return report(s);
  } else {
    Result<std::optional<Launch>> found =
        find_launch([](const char* name) { return std::getenv(name); }, options.rendezvous);
    if (!found) return report(found.status());
    if (!found->has_value()) {
      return report(invalid_argument(
          "riffle probe needs hosts, or a launcher such as srun or mpirun that starts it on them "
          "(riffle probe --help)"));
    }
    Launch& launch = **found;
    is_launch = true;
    if (launch.rank == 0) {
      Result<Fd> opened = open_door(&launch.meeting.port);
      if (!opened) return report(opened.status());
      door = std::move(*opened);
    }
    if (launch.meeting.hosts.empty()) {
      if (const Status s = meet_by_pmix(options, launch); !s) return report(s);
    }
    if (launch.rank > 0) {
      const Result<Fd> road = go_to(launch.meeting, launch.rank, options.timeout_ms());
      return road ? serve_probe(road->get(), road->get()) : report(road.status());
    }
    if (const Status s = gather_peers(options, launch, door, crew); !s) return report(s);
  }
  const Result<ProbeFindings> found = lead_probe(crew, options.timeout_ms(), is_launch);
  return found ? show(options, *found) : report(found.status());
}

}  // namespace

void add_probe(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ProbeArguments>();
  CLI::App* sub = app.add_subcommand(
      "probe", "The network between hosts: rates, racks, slow links, measured without a job");
  sub->add_option("hosts", o->hosts, "Hosts as ssh knows them; none under srun, mpirun, torchrun");
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->add_option("--svg", o->svg, "Also write a heat map of all pairs");
  sub->add_option("--fabric", o->fabric, "Also write a fabric file, for RIFFLE_FABRIC");
  sub->add_option(
         "--ssh", o->ssh,
         "How to run a command on a host: words, %h is the host, which otherwise comes last")
      ->capture_default_str();
  sub->add_option("--riffle", o->riffle, "This command on the hosts; its own path by default");
  sub->add_option("--rendezvous", o->rendezvous,
                  "Under a launcher: rank 0's HOST:PORT, where neither it nor Slurm tells");
  sub->add_option("--timeout", o->timeout_s,
                  "Seconds for hosts to come, and for each attempt to measure")
      ->check(CLI::Range(5, kMostTimeoutMs / 1000))
      ->capture_default_str();
  sub->add_flag("--peer", o->peer, "What runs on the hosts")->group("");
  sub->footer(
      "Examples:\n"
      "  riffle probe node0 node1 node2 node3            over ssh, keys only\n"
      "  riffle probe --fabric cluster.toml --svg map.svg $(cat hosts)\n"
      "  riffle probe --ssh 'ssh -p 2222 -l ubuntu' a b c\n"
      "  srun -N 8 --ntasks-per-node=1 riffle probe      in a Slurm allocation\n"
      "  mpirun -n 8 --map-by node riffle probe\n"
      "  torchrun --nnodes 8 --nproc-per-node 1 ... --no-python riffle probe\n"
      "It sends what a job's first communicator sends (RIFFLE_PROBE): rounds of 50 ms, some\n"
      "seconds in all, through the interfaces that RIFFLE_SOCKET_IFNAME chooses. A host that does\n"
      "not come or is lost is named, and the others go on.\n"
      "Exit code: 0 measured, 1 a host is missing or nothing was measured, 2 wrong usage.");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
