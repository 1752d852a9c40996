"""Everything that the demo measures, as plain dictionaries."""

import contextlib
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading

import digits
import resnet50
import results
from drawing import Failed
from network import Network

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 200
RING_STEPS = 40     # enough for its time per step
WARM_UP_STEPS = 5   # not counted in times
PLANNED_BYTES = 32 << 20  # the size at which the plugin compares plans
CPU_BOUND = 0.8     # above this load of the machine a time says little of the network
LIMIT_S = 400       # for one program
PYTHON = "/usr/bin/python3"
NAMES = {"riffle": "Riffle", "nccl-ring": "NCCL's ring", "nccl-ring-ordered": "NCCL's ring, perfect order"}
# Each has several algorithms or settings, of which the fastest is shown.
TRIED = {"nccl-tree": "NCCL's trees", "blueconnect": "BlueConnect, told the racks", "gloo": "Gloo",
         "openmpi": "Open MPI"}
KNOW_RACKS = ("nccl-ring-ordered", "blueconnect")  # pointless without racks


class Site:
    """The built programs, and the network they run on."""

    def __init__(self, build, profile, output):
        self.riffle = build / "tools/riffle"
        self.plugin = build / "plugin/libnccl-net-riffle.so"
        self.trainer = build / "test/training/libriffle_trainer.so"
        self.worker = ROOT / "test/training/worker.py"
        self.profile = profile
        self.output = output
        for file in (self.riffle, self.plugin, self.trainer):
            if not file.exists():
                raise Failed(f"{file} is missing; scripts/demo builds it")
        self.network = Network(ROOT / f"bench/profiles/{profile}.toml")
        self.nodes = len(self.network.nodes)
        picture = output / "plan.svg"
        self.plan = json.loads(run([self.riffle, "plan", "--profile", profile, "--bytes",
                                    PLANNED_BYTES, "--json", "--svg", picture]).stdout)
        self.plan_svg = picture.read_text()
        probe = run([self.riffle, "cluster", "--profile", profile, "--", "true"], may_fail=True)
        self.emulated = probe.returncode == 0
        self.obstacle = probe.stderr.strip().removeprefix("riffle: ")  # why it cannot be emulated here

    def environment(self):
        """The caller's, without settings that would change what is measured."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RIFFLE_", "NCCL_"))}
        if self.emulated:
            return kept  # Riffle finds the network itself
        # On one machine auto would rightly fall back to NCCL.
        return dict(kept, RIFFLE_SOCKET_IFNAME="=lo", RIFFLE_COLLNET="on")


def run(command, may_fail=False):
    command = [str(c) for c in command]
    result = subprocess.run(command, text=True, timeout=60, capture_output=True)
    if result.returncode != 0 and not may_fail:
        raise Failed(f"{' '.join(command)}: {result.stderr.strip()}")
    return result


@contextlib.contextmanager
def running(command, environments):
    """The programs, alive at most until the end of the block, or for LIMIT_S."""
    programs = [subprocess.Popen([str(c) for c in command], env=environment, text=True,
                                 stdout=subprocess.PIPE) for environment in environments]
    watchdog = threading.Timer(LIMIT_S, lambda: [program.kill() for program in programs])
    watchdog.start()
    try:
        yield programs
    finally:
        watchdog.cancel()
        for program in programs:
            program.kill()
            program.wait()


def run_workers(site, arguments, on_line):
    """worker.py once per node: on the emulated cluster, or side by side on loopback."""
    command = [PYTHON, site.worker, *arguments]
    environments = [site.environment()]
    if site.emulated:
        command = [site.riffle, "cluster", "--profile", site.profile, "--", *command]
    else:
        environments = [dict(site.environment(), RANK=str(rank), WORLD_SIZE=str(site.nodes))
                        for rank in range(site.nodes)]
    with running(command, environments) as workers:
        for line in workers[0].stdout:
            on_line(json.loads(line))
        if any([worker.wait() for worker in workers]):
            raise Failed("a worker of the training failed; its message is above")


def train(site, on_step):
    def course_of(folder, steps, algorithm, on_line):
        run_workers(site, ["--library", site.trainer, "--plugin", site.plugin, "--output", folder,
                           "--steps", steps, "--algorithm", algorithm], on_line)
        return results.course(folder)

    def times(course):
        counted = course["course"][WARM_UP_STEPS:]
        return {key: statistics.median(entry[key] for entry in counted)
                for key in ("step_s", "reduce_s")}

    with tempfile.TemporaryDirectory() as folder:
        course = course_of(folder, STEPS, "", on_step)
        weights = results.weights(folder, site.nodes)
    with tempfile.TemporaryDirectory() as folder:
        ring = course_of(folder, RING_STEPS, "ring", lambda entry: None)
    alone = digits.train_alone(STEPS)
    return {"course": course["course"], "bytes": sum(course["bucket_bytes"]),
            "collnet_calls": course["collnet_calls"],
            "accuracy": course["course"][-1]["accuracy"],
            "identical": results.identical(weights),
            "distance": results.distance(weights[0], alone.parameters),
            "riffle": times(course), "ring": times(ring)}


def fresh(file):
    """What an earlier run left is gone: if this one dies before it writes, there is nothing to show."""
    file.unlink(missing_ok=True)
    return file


def written(file, program):
    """What a program was to write."""
    if not file.exists():
        raise Failed(f"{program} ended without its rows; its message is above")
    return json.loads(file.read_text())


def bench(site, peers, sizes, on_peer, warmup=0, iters=1):
    """Rows of `riffle bench`."""
    file = fresh(site.output / "buckets.json")
    command = [site.riffle, "bench", "--profile", site.profile, "--peers", peers, "--sizes",
               ",".join(map(str, sizes)), "--warmup", warmup, "--iters", iters, "--json", file]
    if not site.emulated:
        command.append("--loopback")
    environment = {k: v for k, v in site.environment().items() if not k.startswith("RIFFLE_")}
    seen = set()
    with running(command, [environment]) as (program,):
        for line in program.stdout:
            peer = (line.split() or ["#"])[0]
            if peer not in seen and not peer.startswith("#"):
                seen.add(peer)
                on_peer(peer)
        if program.wait() != 0:
            print("demo: riffle bench reports a problem, see above", file=sys.stderr)
    return written(file, "riffle bench")


def library(rows, peer, name, sizes):
    """All buckets of one peer, as [one library]; the first row warmed up the connections."""
    mine = [r for r in rows if r["peer"] == peer][1:]
    if len(mine) != len(sizes):
        return []
    return [{"peer": peer, "name": name, "times_s": [r["time_us"] / 1e6 for r in mine],
             "total_s": sum(r["time_us"] for r in mine) / 1e6,
             "wrong": sum(r["wrong"] for r in mine),
             "cpu_load": statistics.mean(r["cpu_load"] for r in mine)}]


def fastest_variants(site, peers, on_peer):
    """{variant: its name to show} for each peer that has several. Warmed up: some connect in their
    first call."""
    on_peer("looking for the fastest algorithm of each library here")
    found = {}
    for row in bench(site, ",".join(peers), [4 << 20], lambda peer: None, warmup=1, iters=3):
        if row["peer"] in peers:
            which = row["variant"].removeprefix(row["peer"]).removeprefix("-")
            name = TRIED[row["peer"]]
            found[row["variant"]] = f"{name} ({which})" if row["peer"] in ("gloo", "openmpi") else name
    return found


def buckets(site, on_peer):
    """Time of every library for every bucket."""
    has_racks = site.emulated and len(site.network.racks) > 1
    shown = [peer for peer in [*NAMES, *TRIED] if has_racks or peer not in KNOW_RACKS]
    variants = fastest_variants(site, [peer for peer in shown if peer in TRIED], on_peer)
    names = NAMES | variants
    if "nccl-ring-ordered" in shown:
        names["nccl-ring"] += ", ranks as they lie"
    sizes = resnet50.bucket_bytes()
    peers = [peer for peer in shown if peer in NAMES] + list(variants)
    rows = bench(site, ",".join(peers), [1 << 20, *sizes],
                 lambda peer: on_peer(f"{names.get(peer, peer)} is done"))
    libraries = [one for peer in dict.fromkeys(r["peer"] for r in rows)
                 for one in library(rows, peer, names.get(peer, peer), sizes)]
    bound = [r["bound_us"] for r in rows if r["peer"] == "riffle"][1:]
    return {"bytes": sizes, "libraries": libraries,
            "bounds_s": None if None in bound else [b / 1e6 for b in bound]}


def plan_changes(folder):
    """What node 0 recorded of every plan after the first: why and which."""
    lines = [json.loads(line) for file in sorted(pathlib.Path(folder).iterdir())
             for line in file.read_text().splitlines()]
    return [{"cause": line["cause"], "plan": line["name"]}
            for line in sorted((one for one in lines if one["type"] == "plan"),
                               key=lambda one: one["t"])
            if line["rank"] == 0 and line["cause"] != "connect"]


def contention(site, on_peer):
    """One all-reduce after the other while a foreign flow comes and goes, with and without
    replanning; None where networks cannot be emulated."""
    if not site.emulated:
        return None
    file = fresh(site.output / "contention.json")
    environment = {k: v for k, v in site.environment().items() if not k.startswith("RIFFLE_")}
    with tempfile.TemporaryDirectory() as record:
        command = [site.riffle, "bench", "--profile", "contention8", "--peers", "riffle-fixed",
                   "--sizes", "32M", "--phases", "3,12,20", "--json", file, "--record", record]
        with running(command, [environment]) as (program,):
            for line in program.stdout:
                if "time over the bound" in line:
                    on_peer(f"{line.split()[1].rstrip(':')} is done")
            if program.wait() != 0:
                print("demo: riffle bench reports a problem, see above", file=sys.stderr)
        changes = plan_changes(record)
    series = written(file, "riffle bench")
    after = [index + 1 for index, moment in enumerate(series[0]["series"])
             for _ in moment["changes"]]
    return {"series": series,
            "changes": [dict(change, after=at) for change, at in zip(changes, after)]}


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return {"processors": os.cpu_count(), "model": models[0] if models else platform.machine(),
            "kernel": platform.release(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}
