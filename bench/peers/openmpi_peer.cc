// Open MPI over TCP between namespaces: mpirun runs on node0 and reaches the other nodes through a
// launch agent that, in place of ssh, enters the namespaces of the node it is given.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "bench/peers/peer.h"
#include "lab/cluster/agent.h"
#include "lab/cluster/command.h"

namespace riffle::bench {
namespace {

// TCP alone: no shared memory, no other network, so that every byte takes the shaped links.
std::vector<std::string> command(const Site& site, const std::string& agent,
                                 const std::string& algorithm) {
  std::vector<std::string> args = {"mpirun", "--allow-run-as-root", "-np",
                                   std::to_string(site.ranks)};
  auto set = [&](const std::string& key, const std::string& value) {
    args.insert(args.end(), {"--mca", key, value});
  };
  set("pml", "ob1");
  set("btl", "tcp,self");
  set("coll", "^sm");
  if (!algorithm.empty()) {
    set("coll_tuned_use_dynamic_rules", "1");
    set("coll_tuned_allreduce_algorithm", algorithm);
  }
  set("mpi_yield_when_idle", "1");
  set("orte_tmpdir_base", site.folder);
  const std::string interface = site.cluster ? "eth0" : "lo";
  set("btl_tcp_if_include", interface);
  set("oob_tcp_if_include", interface);
  set("hwloc_base_binding_policy", "none");
  set("rmaps_base_oversubscribe", "1");
  if (site.cluster) {
    std::string hosts;
    for (int n = 0; n < site.ranks; ++n) {
      hosts += (n ? ",node" : "node") + std::to_string(n) + ":1";
    }
    args.insert(args.end(), {"--host", hosts, "--map-by", "node"});
    set("plm", "rsh");
    set("plm_rsh_agent", agent);
    set("plm_rsh_no_tree_spawn", "1");
    set("orte_keep_fqdn_hostnames", "1");
  }
  args.insert(args.end(), {site.programs + "/riffle_bench_mpi", site.control});
  return args;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

Peer openmpi_peer(const std::string& algorithm, const std::string& programs) {
  Peer peer;
  peer.is_external = true;
  peer.name = peer.title = "openmpi-" + (algorithm.empty() ? "default" : algorithm);
  if (!std::filesystem::exists(programs + "/riffle_bench_mpi")) {
    peer.missing = "riffle_bench_mpi was not built: apt install libopenmpi-dev, then build again";
  } else if (!cluster::run_command({"mpirun", "--version"})) {
    peer.missing = "there is no mpirun: apt install openmpi-bin";
  }
  peer.supervise = [algorithm](const Site& site) {
    const pid_t supervisor = getpid();
    const std::string agent = site.folder + "/mpi-agent";
    Status status = site.cluster ? cluster::write_agent(agent, *site.cluster) : Status::ok();
    if (site.cluster && site.cluster->profile().equal_host_names) {
      status = invalid_argument("openmpi takes nodes of one host name for one node");
    }
    if (status) status = site.enter(0);
    if (!status) {
      dprintf(2, "%s\n", status.message().c_str());
      return 1;
    }
    // Open MPI's daemons leave their parents. Under a process namespace they end with mpirun, which
    // is its first process and ends with us; where that is not allowed they end by themselves.
    const bool contained = unshare(CLONE_NEWPID) == 0;
    const pid_t pid = fork();
    if (pid != 0) return wait_for(pid);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!contained && getppid() != supervisor) _exit(1);
    std::vector<std::string> text = command(site, agent, algorithm);
    std::vector<char*> args;
    for (std::string& a : text) args.push_back(a.data());
    args.push_back(nullptr);
    execvp(args[0], args.data());
    dprintf(2, "cannot run mpirun\n");
    _exit(1);
  };
  return peer;
}

}  // namespace riffle::bench
