"""What a result depends on besides the code: the machine, without anything that names it."""
import os
import pathlib
import platform
import subprocess
import time

from table import ROOT

# What measuring itself writes, and pages.
OWN_FILES = (":!bench/results", ":!*.md")


def first(path, key):
    for line in pathlib.Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def describe():
    memory_kb = first("/proc/meminfo", "MemTotal").split()[0]
    congestion = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return {
        "cpu": first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "machine_cores": os.cpu_count(),
        "memory_gib": round(int(memory_kb) / (1 << 20), 1) if memory_kb.isdigit() else None,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "tcp_congestion_control": congestion.read_text().strip() if congestion.exists() else "unknown",
    }


def processor_times():
    """(idle, all) of those that this process may use, since the machine has started, in ticks."""
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    with open("/proc/stat") as file:
        cpus = [line.split() for line in file if line.startswith("cpu")]
    lines = [cpu for cpu in cpus if cpu[0] in usable] or cpus[:1]  # a container may number its own from 0
    ticks = [sum(column) for column in zip(*([int(word) for word in line[1:9]] for line in lines))]
    return ticks[3] + ticks[4], sum(ticks)


def busy(seconds=1.0):
    """What all others use of these processors while this process waits, 0 to 1. A load average would count
    what has ended a minute ago, such as the run or the build before."""
    idle, whole = processor_times()
    time.sleep(seconds)
    idle, whole = (now - then for now, then in zip(processor_times(), (idle, whole)))
    return 1 - idle / whole if whole else 0.0


def git(*arguments):
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *OWN_FILES)
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("+changes" if changed else "")
