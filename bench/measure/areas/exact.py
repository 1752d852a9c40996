"""All-reduces of exact mode beside the bound and beside other libraries, on emulated uneven networks. Riffle
finds the network itself; rivals with a word for it are told the racks."""
from table import Area, Before, Figure, Run, at_least, at_most, rows, times_as_fast

RIFFLE = "build/tools/riffle bench --json {json} "
X_LIMIT = 1.05
X_BEFORE = {"uniform8": "1.020", "straggler8": "1.015", "racks8": "1.044", "racks8-ordered": "1.046", "mixed16": "1.032"}
RING_LIMITS = {"uniform8": (0.97, "0.993"), "straggler8": (1.5, "1.73"), "mixed16": (1.6, "1.83"),
               "racks8": (5, "6.7"), "racks8-ordered": (1.5, "1.68")}
GLOO_BEFORE = {"uniform8": "1.006", "racks8": "4.5"}
RIVALS = {"nccl-best": "NCCL's better of ring and trees", "blueconnect": "BlueConnect, told the racks", "gloo": "Gloo",
          "openmpi": "Open MPI"}
ORDERED = {"nccl-ring-ordered": "NCCL's ring, told the racks"}  # only where ranks do not lie so already


def bound(profile, before):
    command = RIFFLE + f"--profile {profile} --sizes "
    return Run(profile, command + "16M,32M,64M", [
        Figure(f"`{profile}`, x bound, worst of 16, 32, 64 MiB", rows("x_bound", max, peer="riffle"),
               at_most(X_LIMIT), digits=3, before=Before(before))],
        quick=command + "1M --iters 2", repeat=3)


def times_as_fast_as_all(peers):
    return lambda out: min(times_as_fast(peer)(out) for peer in peers)


def against(profile, limit, before):
    rivals = RIVALS | (ORDERED if profile == "racks8" else {})
    peers = ["nccl-ring", *rivals]
    command = RIFFLE + f"--profile {profile} --peers {','.join(peers)} --sizes "
    return Run(f"{profile}-peers", command + "16M", [
        Figure(f"`{profile}`, times as fast as NCCL's ring", times_as_fast("nccl-ring"),
               at_least(limit), digits=2 if limit > 1 else 3, before=Before(before)),
        *(Figure(f"`{profile}`, times as fast as {words}", times_as_fast(peer), digits=2 if limit > 1 else 3,
                 before=Before(GLOO_BEFORE[profile]) if peer == "gloo" and profile in GLOO_BEFORE else None)
          for peer, words in rivals.items()),
        Figure(f"`{profile}`, times as fast as the fastest of all these", times_as_fast_as_all(peers),
               at_least(0.98), digits=3)],
        quick=command + "1M --iters 2", repeat=3)


# All are there at the same time, so not every variant of -peers: one of each kind for large and for small sums.
PAIRED = "nccl-ring nccl-tree-1M nccl-tree-256K blueconnect-256K gloo-ring gloo-bcube gloo-hd openmpi-default".split()


def paired(profile):
    rivals = PAIRED + (["nccl-ring-ordered"] if profile == "racks8" else [])
    sizes = "8,1K,64K,1M,16M" if profile == "mixed16" else "8,1K,64K,1M,16M,64M"  # 16 x 9 processes have no room for more
    command = RIFFLE + f"--profile {profile} --in-turns --peers {','.join(rivals)} "
    return Run(f"{profile}-paired", command + f"--sizes {sizes} --rounds 10", [
        Figure(f"`{profile}`, 8 B to {sizes.split(',')[-1][:-1]} MiB: time of the fastest of {len(rivals)} rivals over Riffle's, worst",
               lambda out: min(row["ratio"]["median"] for row in out.rows if row["ratio"]), at_least(0.98), digits=3)],
        quick=command + "--sizes 4K --rounds 1", is_long=True, limit_s=7200)


AREA = Area(
    title="Exact sums on uneven networks", minutes=75,
    about="`racks8` has ranks interleaved over the racks, as a scheduler may place them; `racks8-ordered` has them rack by rack, the best order for a "
          "ring. Riffle finds the network itself. Gloo, Open MPI and NCCL's trees: the best of their algorithms or buffers. All sockets have the "
          "same congestion control, cubic.",
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_bench_mpi"),
    runs=[bound(*pair) for pair in X_BEFORE.items()]
    + [against(p, *limit) for p, limit in RING_LIMITS.items()] + [paired(p) for p in RING_LIMITS])
