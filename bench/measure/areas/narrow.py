"""Sums in a narrower type (RIFFLE_WIRE) beside exact ones."""
from table import Area, Figure, Run, at_least, times_as_fast

BENCH = "build/tools/riffle bench --json {json} --sizes 32M --iters 20 --peers riffle-exact "


def run(profile, wire, least=None):
    command = BENCH + f"--profile {profile} --wire {wire}"
    return Run(f"{profile}-{wire}", command, [
        Figure(f"`{profile}`, {wire}: times exact speed", times_as_fast("riffle-exact"),
               at_least(least) if least else None)],
        quick=command.replace("32M", "1M").replace("--iters 20", "--iters 2"), repeat=3)


AREA = Area(
    title="Sums in a narrower type", minutes=25,
    about="`RIFFLE_WIRE`, 32 MiB: bf16 sends half of float32's bytes, fp8block 33 for 128. Medians of 20 calls; all nodes have the same bits.",
    runs=[run("uniform8", "bf16", 1.8), run("uniform8", "fp8block", 3.2), run("racks8", "bf16"), run("racks8", "fp8block"),
          run("straggler8", "bf16"), run("straggler8", "fp8block")])
