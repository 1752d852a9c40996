"""All-reduces of exact mode beside the bound and beside other libraries, on emulated uneven networks. Riffle
finds the network itself; rivals with a word for it are told the racks."""
from table import Area, Before, Figure, Run, at_least, at_most, rows

RIFFLE = "build/tools/riffle bench --json {json} "
X_LIMIT = 1.05
X_BEFORE = {"uniform8": "1.020", "straggler8": "1.015", "racks8": "1.044", "racks8-ordered": "1.046", "mixed16": "1.032"}
RING_LIMITS = {"uniform8": (0.97, "0.993"), "straggler8": (1.5, "1.73"), "mixed16": (1.6, "1.83"),
               "racks8": (5, "6.7"), "racks8-ordered": (1.5, "1.68")}
GLOO_BEFORE = {"uniform8": "1.006", "racks8": "4.5"}
# All are there at the same time, so not every variant of each: one of each kind for large and for small sums.
RIVALS = {"NCCL's trees": ["nccl-tree-1M", "nccl-tree-256K"], "BlueConnect, told the racks": ["blueconnect-256K"],
          "Gloo": ["gloo-ring", "gloo-bcube", "gloo-hd"], "Open MPI": ["openmpi-default"]}
ORDERED = {"NCCL's ring, told the racks": ["nccl-ring-ordered"]}  # only where ranks do not lie so already
SMALL = "8,1K,64K,1M"


def bound(profile, before):
    command = RIFFLE + f"--profile {profile} --sizes "
    return Run(profile, command + "16M,32M,64M", [
        Figure(f"`{profile}`, x bound, worst of 16, 32, 64 MiB", rows("x_bound", max, peer="riffle"),
               at_most(X_LIMIT), digits=3, before=Before(before))],
        quick=command + "1M --iters 2", repeat=3)


def least_ratio(peers, size=None):
    """Of times of rivals over Riffle's, taken in turns."""
    return lambda out: min(row["ratio"]["median"] for row in out.rows
                           if row["peer"] in peers and row["bytes"] == (size or row["bytes"]))


def in_turns(profile, before):
    """Beside all rivals: small sums, and two sizes of large ones."""
    limit, ring_before = before
    digits = 2 if limit > 1 else 3
    rivals = {"NCCL's ring": ["nccl-ring"]} | RIVALS | (ORDERED if profile == "racks8" else {})
    peers = [peer for group in rivals.values() for peer in group]
    command = RIFFLE + f"--profile {profile} --in-turns --rounds 10 --peers {','.join(peers)} --sizes "
    quick = command.replace("--rounds 10", "--rounds 1") + "4K"
    befores = {"NCCL's ring": ring_before, "Gloo": GLOO_BEFORE.get(profile)}
    large = [Figure(f"`{profile}`, 16 MiB, times as fast as {words}", least_ratio(group),
                    at_least(limit) if words == "NCCL's ring" else None, digits=digits,
                    before=Before(befores[words]) if befores.get(words) else None)
             for words, group in rivals.items()]

    def fastest(sizes, size=None):
        return Figure(f"`{profile}`, {sizes}, times as fast as the fastest of {len(peers)} rivals, worst",
                      least_ratio(peers, size), at_least(0.98), digits=3)
    runs = [Run(f"{profile}-small", command + SMALL, [fastest("8 B to 1 MiB")], quick=quick),
            Run(f"{profile}-16M", command + "16M", [*large, fastest("16 MiB")], quick=quick, is_long=True)]
    if profile != "mixed16":  # 16 x 9 processes have no room for more
        # The first size is there to warm up.
        runs.append(Run(f"{profile}-64M", command + "1M,64M --iters 1 --warmup 0", [fastest("64 MiB", 64 << 20)],
                        quick=quick, is_long=True, limit_s=7200))
    return runs


AREA = Area(
    title="Exact sums on uneven networks", minutes=45,
    about="`racks8` has ranks interleaved over the racks, as a scheduler may place them; `racks8-ordered` has them rack by rack, the best order for a "
          "ring. Riffle finds the network itself. Rivals are measured in turns with Riffle, all-reduce by all-reduce, in ten rounds of new processes; "
          "ratios are medians of the rounds. All sockets have the same congestion control, cubic.",
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_bench_mpi"),
    runs=[bound(*pair) for pair in X_BEFORE.items()]
    + [run for pair in RING_LIMITS.items() for run in in_turns(*pair)])
