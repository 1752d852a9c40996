"""The planner's choice on random fabrics, by the production engine in the simulator; deterministic but for
planning times."""
import re

from table import Area, Before, Figure, Run, at_least, at_most, printed, rows

STUDY = "build/bench/riffle_planner_study --quiet --class "


def study(name, words, arguments, limit, wanted, before):
    command = f"{STUDY}{arguments} --limit {limit}"
    return Run(name, command, [
        Figure(f"{words}: percent within {limit} of the bound", printed(r"([0-9.]+) % within [0-9.]+\n"),
               at_least(wanted), digits=1, before=Before(before))],
        quick=command.replace("--count 1000", "--count 5"), is_timed=False)


def slower_than_even(out):
    """Seed 63 makes node 63 slow, seed 64 none: columns seed, nodes, racks, bound in ms, x of it."""
    uneven, even = (float(bound) * float(x) for bound, x in
                    re.findall(r"(?m)^ +6[34] +\d+ +\d+ +([0-9.]+) +([0-9.]+) ", out.text))
    return uneven / even


def planning(nodes, limit, before):
    name = rf"plan_best/nodes:{nodes}/uneven:[01]"
    command = (f"build/bench/riffle_planner_bench --benchmark_filter='{name}' "
               "--benchmark_out={json} --benchmark_out_format=json")
    return Run(f"planning-{nodes}", command, [
        Figure(f"planning for {nodes:,} nodes on one core, s", rows("cpu_time", max, scale=1e-3),
               at_most(limit), before=Before(before))])


def first_line(profile, words):
    return Run(f"names-{profile}", f"build/tools/riffle plan --profile {profile} --bytes 32M", [
        Figure(f"`riffle plan` on `{profile}` names \"{words}\" in its first line",
               lambda out: float(words in out.text.splitlines()[0]), at_least(1), digits=0,
               before=Before("1"))], is_timed=False)


AREA = Area(
    title="Planner", minutes=12,
    about="1,000 random fabrics of each kind at 10 Gbit/s, simulated with the production engine.",
    targets=("riffle", "riffle_planner_study", "riffle_planner_bench"),
    runs=[
        study("flat-64m", "no racks, 64 MiB", "flat --from 2001 --count 1000", 1.06, 100, "99.3"),
        study("flat-1m", "no racks, 1 MiB", "flat --from 2001 --count 1000 --bytes 1M", 1.15, 100, "98.8"),
        study("even-racks", "racks, even rates, 64 MiB", "even-racks --from 3001 --count 1000", 1.15, 98, "99.7"),
        study("uneven-racks", "racks, uneven rates, 64 MiB", "uneven-racks --from 3001 --count 1000", 1.15, 98,
              "99.4"),
        Run("half-rate", "build/bench/riffle_planner_study --class half-rate --from 63 --count 2", [
            Figure("one half-rate node of 64: times the even network's time", slower_than_even,
                   at_most(1.06), digits=3, before=Before("1.039"))], is_timed=False),
        planning(16384, 30, "0.53"),
        first_line("racks8", "uplink of rack left"),
    ])
