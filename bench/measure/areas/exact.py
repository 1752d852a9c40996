"""All-reduces of exact mode beside the bound and beside other libraries, on emulated uneven networks. Riffle
finds the network itself; rivals with a word for it are told the racks."""
from table import Area, Before, Figure, Run, at_least, at_most, rows

RIFFLE = "build/tools/riffle bench --json {json} "
X_LIMIT = 1.05
X_BEFORE = {"uniform8": "1.020", "straggler8": "1.015", "racks8": "1.044", "racks8-ordered": "1.046", "mixed16": "1.032"}
RING_LIMITS = {"uniform8": (0.97, "0.993"), "straggler8": (1.5, "1.73"), "mixed16": (1.6, "1.83"),
               "racks8": (5, "6.7"), "racks8-ordered": (1.5, "1.68")}
GLOO_BEFORE = {"uniform8": "1.006", "racks8": "4.5"}
# All are there at the same time, and 16 nodes have no room for so many; for sums of 64 MiB even less.
SMALL_RIVALS = {
    "NCCL's ring": ["nccl-ring"], "NCCL's trees": ["nccl-tree-1M", "nccl-tree-256K"],
    "BlueConnect, told the racks": ["blueconnect-128K", "blueconnect-256K"], "Gloo": ["gloo-ring", "gloo-bcube", "gloo-hd"],
    "Open MPI": ["openmpi-default", "openmpi-recursive_doubling"]}
LARGE_RIVALS = {
    "NCCL's ring": ["nccl-ring"], "NCCL's trees": ["nccl-tree", "nccl-tree-1M", "nccl-tree-256K"],
    "BlueConnect, told the racks": ["blueconnect-256K", "blueconnect-1M"], "Gloo": ["gloo-ring", "gloo-bcube", "gloo-hd"],
    "Open MPI": ["openmpi-default", "openmpi-ring", "openmpi-rabenseifner"]}
NEAREST_ON_MIXED16 = {  # one variant each of those that came within twice Riffle's time at 16 MiB
    "NCCL's ring": ["nccl-ring"], "BlueConnect, told the racks": ["blueconnect-256K"], "Gloo": ["gloo-ring"]}
ORDERED = {"NCCL's ring, told the racks": ["nccl-ring-ordered"]}  # only where ranks do not lie so already
SIZES = {"small": {"8 B": 8, "1 KiB": 1 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20}, "16M": {"16 MiB": 16 << 20},
         "64M": {"64 MiB": 64 << 20}}


def bound(profile, before):
    command = RIFFLE + f"--profile {profile} --sizes "
    return Run(profile, command + "16M,32M,64M", [
        Figure(f"`{profile}`, x bound, worst of 16, 32, 64 MiB", rows("x_bound", max, peer="riffle"),
               at_most(X_LIMIT), digits=3, before=Before(before))],
        quick=command + "1M --iters 2", repeat=3)


def fastest(peers, size):
    """Of times of rivals over Riffle's, taken in turns: those of the fastest rival."""
    return lambda out: min((row["ratio"] for row in out.rows if row["peer"] in peers and row["bytes"] == size),
                           key=lambda ratio: ratio["median"])


def against(peers, size, words, limit, **more):
    found = fastest(peers, size)
    return Figure(words, lambda out: found(out)["median"], limit,
                  spread=lambda out: (found(out)["low_95"], found(out)["high_95"]), **more)


def in_turns(profile, before):
    """Beside all rivals: small sums, and two sizes of large ones."""
    limit, ring_before = before
    digits = 2 if limit > 1 else 3
    ordered = ORDERED if profile == "racks8" else {}
    befores = {"NCCL's ring": ring_before, "Gloo": GLOO_BEFORE.get(profile)}

    def run(name, rivals, options, figures, **more):
        peers = [peer for group in rivals.values() for peer in group]
        command = RIFFLE + f"--profile {profile} --in-turns --rounds 10 --peers {','.join(peers)} --sizes "
        best = [against(peers, size, f"`{profile}`, {words}, times as fast as the fastest of {len(peers)} rivals",
                        at_least(0.98), digits=3) for words, size in SIZES[name].items()]
        return Run(f"{profile}-{name}", command + options, figures + best,
                   quick=command.replace("--rounds 10", "--rounds 1") + options.replace("64M", "1M").replace("16M", "1M"), **more)
    large = (SMALL_RIVALS if profile == "mixed16" else LARGE_RIVALS) | ordered
    single = [against(group, 16 << 20, f"`{profile}`, 16 MiB, times as fast as {words}",
                      at_least(limit) if words == "NCCL's ring" else None, digits=digits,
                      before=Before(befores[words]) if befores.get(words) else None)
              for words, group in large.items()]
    runs = [run("small", SMALL_RIVALS | ordered, "8,1K,64K,1M", []), run("16M", large, "16M", single)]
    # The first size is there to warm up.
    runs.append(run("64M", NEAREST_ON_MIXED16 if profile == "mixed16" else large, "1M,64M --iters 1 --warmup 0", [],
                    is_long=True, limit_s=7200))
    return runs


AREA = Area(
    title="Exact sums on uneven networks", minutes=120,
    about="`racks8` has ranks interleaved over the racks, as a scheduler may place them; `racks8-ordered` has them rack by rack, the best order for a "
          "ring. Riffle finds the network itself. Rivals are measured in turns with Riffle, all-reduce by all-reduce, in ten rounds of new processes; "
          "ratios are medians of the rounds, with their 95 % interval, of the fastest variant among those that the command names. All sockets have the "
          "same congestion control, cubic.",
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_bench_mpi"),
    runs=[bound(*pair) for pair in X_BEFORE.items()]
    + [run for pair in RING_LIMITS.items() for run in in_turns(*pair)])
