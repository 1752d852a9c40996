"""The production engine in virtual time: random faults, times of single all-reduces, probing. Deterministic."""
from table import Area, Before, Figure, Run, at_most, printed

SIM = "build/tools/riffle sim "


def soak(name, seeds, words, before, **more):
    command = SIM + "--seeds "
    return Run(name, command + str(seeds), [
        Figure(f"{words} random scenarios with faults: broken", printed(r"seeds \d+ to \d+: (\d+) broken"),
               at_most(0), digits=0, before=Before(before) if before else None)],
        quick=command + "50", is_timed=False, **more)


def alone(profile, before):
    return Run(profile, SIM + f"--profile {profile} --bytes 32M", [
        Figure(f"`{profile}`, 32 MiB, simulated: x bound", printed(r"simulated +[0-9.]+ +([0-9.]+)"),
               digits=3, before=Before(before) if before else None)], is_timed=False)


def probed(profile):
    return Run(f"{profile}-probed", SIM + f"--profile {profile} --probe", [
        Figure(f"`{profile}`, rates found by probing: x bound", printed(r"in [0-9.]+ \w+, ([0-9.]+) x bound"), digits=3)], is_timed=False)


AREA = Area(
    title="Simulator", minutes=2, targets=("riffle",),
    about="Rates of the fabric count as payload rates here; processors are infinitely fast.",
    runs=[soak("soak", 1000, "1,000", "0"), soak("soak-100000", 100000, "100,000", None, is_long=True),
          *(alone(*pair) for pair in (("racks8", "1.009"), ("mixed16", None))),
          probed("racks8")])
