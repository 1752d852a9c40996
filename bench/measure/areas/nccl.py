"""Real NCCL without a GPU. The figures kept are of the real host code of both releases with device work
emulated on the CPU, by a harness that is not distributed; area gpu has what ran on a GPU."""
from table import Area, Before, Figure, Run, passes


def check(name, script, claims):
    return Run(name, f"test/gpu/{script}.sh", [
        Figure(claim, passes(), unit="passes", before=Before(before, *date))
        for claim, before, *date in claims],
        needs=("nvidia-smi",))


AREA = Area(
    title="Real NCCL", minutes=20, targets=("riffle_plugin", "riffle_trainer"),
    about="The kept results are cases passed on NCCL 2.28.9 and 2.30.7, their host code with device work emulated on the CPU, by a harness that is "
          "not distributed; the commands do the like on a machine with a GPU, and the area `gpu` has what they found there.",
    runs=[
        check("all-reduce", "all_reduce", [
            ("COLLNET, closes, kills, aborts, create and destroy", "34 of 34 each"),
            ("types x operators", "50 of 50 each"), ("NET: ring, tree, other collectives", "24 of 24 each"),
            ("settings, forced plans, bad knobs, several ranks per node, splits", "28 of 28 each"),
            ("nccl-tests, unmodified", "8 of 8 each")]),
        check("operations", "operations", [
            ("plan switches with 8 calls in flight", "8 of 8 each"),
            ("small calls", "75 of 75, 54 of 54", "2026-11-23"),
            ("a rank killed or stopped, `error`; in all modes, `continue`", "63 of 63 each"),
            ("ds_sync, moshpit, shadow_sync", "38 of 38, 61 of 61"),
            ("sparse sums (both misses: an expectation of the check)", "47 of 48, 51 of 52")])])
