"""All-reduces of exact mode beside the bound and beside other libraries, on emulated uneven networks."""
from table import Area, Before, Figure, Run, at_least, at_most, rows, times_as_fast

RIFFLE = "build/tools/riffle bench --json {json} "
X_LIMITS = {"uniform8": (1.10, "1.020"), "straggler8": (1.15, "1.015"), "racks8": (1.15, "1.044"),
            "racks8-ordered": (1.15, "1.046"), "mixed16": (1.15, "1.032")}
RING_LIMITS = {"uniform8": (0.97, "0.993"), "straggler8": (1.5, "1.73"), "mixed16": (1.6, "1.83"),
               "racks8": (5, "6.7"), "racks8-ordered": (1.5, "1.68")}
GLOO_BEFORE = {"uniform8": "1.006", "racks8": "4.5"}


def bound(profile, limit, before):
    command = RIFFLE + f"--profile {profile} --sizes "
    return Run(profile, command + "16M,32M,64M", [
        Figure(f"`{profile}`, x bound, worst of 16, 32, 64 MiB", rows("x_bound", max, peer="riffle"),
               at_most(limit), digits=3, before=Before(before))],
        quick=command + "1M --iters 2", repeat=3)


def against(profile, limit, before):
    command = RIFFLE + f"--profile {profile} --peers nccl-ring,gloo,openmpi --sizes "
    return Run(f"{profile}-peers", command + "16M", [
        Figure(f"`{profile}`, times as fast as NCCL's ring", times_as_fast("nccl-ring"),
               at_least(limit), digits=2 if limit > 1 else 3, before=Before(before)),
        *([Figure(f"`{profile}`, times as fast as Gloo", times_as_fast("gloo"), digits=2,
                  before=Before(GLOO_BEFORE[profile]))] if profile in GLOO_BEFORE else [])],
        quick=command + "1M --iters 2", repeat=3)


AREA = Area(
    title="Exact sums on uneven networks", minutes=30,
    about="`racks8` has ranks interleaved over the racks, as a scheduler may place them; `racks8-ordered` has them rack by rack, the best order for a "
          "ring. Gloo: the best of its ring, chunked ring and halving-doubling.",
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_bench_mpi"),
    runs=[bound(p, *limit) for p, limit in X_LIMITS.items()]
    + [against(p, *limit) for p, limit in RING_LIMITS.items()])
