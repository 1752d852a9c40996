"""Which ranks of a job this process has to start, with which variables, and how processes are started."""
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import time

# What launchers tell a process of its place: rank, number of ranks, rank on its host. Slurm's number of ranks
# is that of the step: a batch script itself is in none.
LAUNCHERS = {"torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
             "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
             "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")}
PORTS = range(20000, 30000)  # below those that systems give to connections
BY_ITSELF = "test/gpu/run"
LOOPBACK = {"NCCL_SOCKET_IFNAME": "lo", "RIFFLE_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0",
            "RIFFLE_COLLNET": "on"}  # `auto` would rightly fall back to NCCL on one machine


class Missing(Exception):
    """Something that a run needs is not here; the text says what to do about it."""


def first_host(nodes):
    """Of a list as Slurm writes it: node[07-12,15]-ib,other."""
    before, first, after = re.match(r"([^,\[]*)(?:\[([^\],-]+)[^\]]*\])?([^,\[]*)", nodes).groups()
    return before + (first or "") + after


def meeting_place(launcher, size, environment):
    """(address, port) of rank 0, the same for all ranks; the first training meets one port further."""
    address = environment.get("MASTER_ADDR")
    if not address and launcher == "Slurm":
        address = first_host(environment.get("SLURM_STEP_NODELIST", ""))
    if not address and environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == str(size):
        address = "127.0.0.1"
    if not address:
        raise Missing(f"MASTER_ADDR is not set, and {launcher} does not tell it: the address of rank 0's host, for "
                      "example mpirun -x MASTER_ADDR=node01")
    told = environment.get("MASTER_PORT") or environment.get("SLURM_JOB_ID") or "0"
    return address, PORTS[int(told) % len(PORTS)]


class Job:
    """ranks: the variables of each rank that this process starts, in the order of the ranks."""

    def __init__(self, ranks, size, started_by, address="127.0.0.1", port=None):
        self.ranks, self.size, self.started_by = ranks, size, started_by
        self._address, self._port, self._trainings = address, port, 0

    @property
    def has_rank_0(self):
        return self.ranks[0]["RANK"] == "0"

    def next_meeting(self):
        """The variables by which the ranks of the next training find each other. Every training has a port of
        its own: the one before may still be in use, torchrun's by its agent."""
        self._trainings += 1
        port = self._port + self._trainings if self._port else free_port()
        return {"MASTER_ADDR": self._address, "MASTER_PORT": str(port)}


def free_port():
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def launched(environment):
    """The job that a launcher has made this process a rank of, or None."""
    for launcher, names in LAUNCHERS.items():
        if all(name in environment for name in names) and int(environment[names[1]]) > 1:
            rank, size, local_rank = (environment[name] for name in names)
            place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local_rank}
            return Job([place], int(size), launcher, *meeting_place(launcher, int(size), environment))
    return None


def on_this_machine(size, gpus_per_node):
    """Consecutive ranks have an NCCL_HOSTID in common, which makes them a node of their own for NCCL."""
    return Job([{"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                 "NCCL_HOSTID": f"node{rank // gpus_per_node}"} for rank in range(size)], size, BY_ITSELF)


def end(processes):
    """Each with what it has started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(p.poll() is None for p in processes):
            time.sleep(0.05)


def run_together(commands, limit_s):
    """commands: (arguments, environment, log file) each. "" if all ended well, else what went wrong; then the
    others are ended, too. A status of 77 means that something is missing."""
    processes, logs = [], []
    deadline = time.monotonic() + limit_s
    try:
        for arguments, environment, path in commands:
            logs.append(path)
            with open(path, "wb") as log:
                processes.append(subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                                  stderr=subprocess.STDOUT, start_new_session=True))
        statuses = [None]
        while None in statuses and not any(statuses) and time.monotonic() < deadline:
            time.sleep(0.05)
            statuses = [process.poll() for process in processes]
    finally:
        end([process for process in processes if process.returncode is None])
    if not any(statuses) and None not in statuses:
        return ""
    failed = next((n for n, status in enumerate(statuses) if status), None)
    if failed is None:
        failed = statuses.index(None)
    said = tail(logs[failed])
    if statuses[failed] == 77:
        raise Missing(said)
    how = f"not ended after {limit_s} s" if statuses[failed] is None else f"exit status {statuses[failed]}"
    return f"{how}; the end of the output:\n{said}"


def tail(path, lines=15):
    with open(path, encoding="utf-8", errors="replace") as log:
        return "".join("    " + line for line in log.readlines()[-lines:]).rstrip()
