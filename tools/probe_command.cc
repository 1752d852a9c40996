// `riffle probe`: measures the network between hosts, without a job.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "tools/command.h"
#include "tools/gathering_options.h"
#include "tools/output_file.h"
#include "tools/probe/gathering.h"
#include "tools/probe/lead.h"
#include "tools/probe/peer.h"
#include "tools/terminal/terminal.h"

namespace riffle::tools {
namespace {

struct ProbeArguments {
  Gathering gathering;
  std::string svg, fabric;
  bool json = false, peer = false;
};

// Settings that bear on the measurement.
bool is_carried(const std::string& name) {
  static const std::set<std::string> of_one_host = {
      "RIFFLE_NODE_NAME",   "RIFFLE_RACK",      "RIFFLE_RECORD",      "RIFFLE_FABRIC",
      "RIFFLE_FABRIC_SAVE", "RIFFLE_CONF_FILE", "RIFFLE_PROBE_SECRET"};
  return (name.starts_with("RIFFLE_") && !of_one_host.contains(name)) ||
         name == "NCCL_SOCKET_IFNAME" || name == "NCCL_SOCKET_FAMILY";
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
  const Result<Gathered> gathered =
      gather(options.gathering, {{"probe", "--peer"}, is_carried}, crew);
  if (!gathered) return report(gathered.status());
  using Role = Gathered::Role;
  if (gathered->role == Role::kPeer) {
    return serve_probe(gathered->road.get(), gathered->road.get());
  }
  if (gathered->role == Role::kAlone) {
    return report(invalid_argument(
        "riffle probe needs hosts, or a launcher such as srun or mpirun that starts it on them "
        "(riffle probe --help)"));
  }
  const Result<ProbeFindings> found =
      lead_probe(crew, options.gathering.timeout_ms(), gathered->role == Role::kRankZero);
  return found ? show(options, *found) : report(found.status());
}

}  // namespace

void add_probe(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ProbeArguments>();
  CLI::App* sub = app.add_subcommand(
      "probe", "The network between hosts: rates, racks, slow links, measured without a job");
  sub->add_option("hosts", o->gathering.hosts,
                  "Hosts as ssh knows them; none under srun, mpirun, torchrun");
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->add_option("--svg", o->svg, "Also write a heat map of all pairs");
  sub->add_option("--fabric", o->fabric, "Also write a fabric file, for RIFFLE_FABRIC");
  add_gathering_options(sub, &o->gathering);
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
