"""One communicator on several progress threads (RIFFLE_THREADS), beside itself on one."""
from table import Area, Figure, Run, at_most

PLUGIN = "build/plugin/libnccl-net-riffle.so"
RIFFLE = "build/tools/riffle bench --json {json} "


def beside_one(profile, counts):
    plugins = " ".join(f"--plugin on{n}={PLUGIN}" for n in (1, *counts))
    settings = " ".join(f"--settings on{n}:RIFFLE_THREADS={n}" for n in counts)
    return RIFFLE + f"--profile {profile} {plugins} {settings}"


def over_one(threads):
    return lambda out: [r["ratio"]["median"] for r in out.rows if r["peer"] == f"on{threads}"][0]


def cost():
    command = beside_one("uniform8", (2,)) + " "
    return Run("cost", command + "--sizes 16M --iters 8 --rounds 10", [
        Figure("`uniform8`, 16 MiB, two threads: time over that of one", over_one(2), at_most(1.03), digits=3)],
        quick=command + "--sizes 1M --iters 2 --rounds 1")


def scaling():
    counts = (2, 4)
    command = beside_one("fast2", counts) + " "
    return Run("scaling", command + "--sizes 64M --iters 8 --rounds 10", [
        Figure(f"`fast2`, 64 MiB, {n} threads: time over that of one", over_one(n), digits=3) for n in counts],
        quick=command + "--sizes 1M --iters 2 --rounds 1")


AREA = Area(
    title="Several threads", minutes=6, targets=("riffle", "riffle_plugin"),
    about="One communicator on two and four progress threads beside itself on one, in turns. `fast2` has links without rates: its rows tell how "
          "threads scale only where the machine has a core for each, and one for NCCL's own thread, on both nodes; on two cores they tell the cost.",
    runs=[cost(), scaling()])
