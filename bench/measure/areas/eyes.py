"""The network found by a job's own probing and traffic, on networks that are not kind to it, beside the
same job told by a file and beside plans that need no knowledge."""
import re

from table import Area, Figure, Run, at_least, at_most, printed, selected

CHECK = "bench/eyes/check.py "
WRONG_FILES = {"swapped-uplinks": "the uplinks of two racks swapped", "doubled-uplink": "an uplink of twice its rate",
               "swapped-nodes": "two nodes in each other's rack"}
WRONG = f"plain-racks12 plain-racks10 --plans {','.join(WRONG_FILES)} "
SHORT = "--warmup 2 --iters 1 --plans ring"


def kept(name):
    """Rows are added to a file that stays, so that a long run can be cut in parts."""
    return f" --json build/eyes-{name}.json && cp build/eyes-{name}.json {{json}}"


def figures(words, least_holding):
    """least_holding: percent of networks on which the limits hold that need not hold on all."""
    return [
        Figure(f"{words}: racks right, percent", printed(r"racks right: ([0-9.]+) %"), digits=1),
        Figure(f"{words}: of racks reported with a confidence of 80 % and more: right, percent",
               printed(r"80 % and more: \d+ of \d+ right, ([0-9.]+)"), at_least(80), digits=1),
        Figure(f"{words}: racks right or a plan as good, percent",
               printed(r"at most 1.03: ([0-9.]+) %"), at_least(least_holding), digits=1),
        Figure(f"{words}: at most 1.10 times as long as told by a file, percent",
               printed(r"at most 1.10: ([0-9.]+) %"), at_least(least_holding), digits=1),
        Figure(f"{words}: times as long as told by a file, worst", printed(r"worst live/file: ([0-9.]+)"), at_most(1.25)),
        Figure(f"{words}: time over the best of ring, tree and direct, worst",
               printed(r"worst live/best of the forced plans: ([0-9.]+)"), at_most(1.05)),
        *(Figure(f"{words}, load up to 80 %: {what}", printed(f"% busy: {pattern}"), limit, digits=digits)
          for what, pattern, limit, digits in [
              ("networks", "([0-9]+)", None, 0),
              ("within 1.10 of what it takes told by a file, percent", ".*1.10 ([0-9.]+)", at_least(least_holding), 1),
              ("times as long as told by a file, worst", ".*, worst ([0-9.]+)", at_most(1.25), 2),
              ("time over the best of ring, tree, direct, worst", ".*over best ([0-9.]+)", at_most(1.05), 2)]),
        Figure(f"{words}: probing, up to 8 nodes, s, longest", printed(r"up to 8 nodes: ([0-9.]+)"), at_most(2)),
        Figure(f"{words}: probing, s, longest", printed(r"s, all: ([0-9.]+)"))]


def steady(name, words, beside):
    """200 all-reduces without need of another plan."""
    command = f"{beside}{CHECK}uniform8 --plans '' --steady 0 --json {{json}} "
    return Run(name, command + "--warmup 195 --iters 5", [
        Figure(f"{words}: plan changes in 200 all-reduces", printed(r"most plan changes: ([0-9.]+)"), at_most(0), digits=0),
        Figure(f"{words}: times as long as told by a file", printed(r"worst live/file: ([0-9.]+)"))],
        quick=command + "--warmup 2 --iters 1", repeat=3)


def units(name, tests, figures, program="riffle_unit_tests"):
    command = f"build/test/{program} --gtest_filter='{tests}'"
    return Run(name, "RIFFLE_TEST_RUNS=1000 " + command, figures, quick="RIFFLE_TEST_RUNS=10 " + command, limit_s=7200,
               is_timed=False)


def passed(tests):
    return lambda out: len(re.findall(rf"\[ +OK \] {tests}", out.text))


def sure_and_right(out):
    right, told = re.findall(r"(\d+) of (\d+) racks sure", out.text)[0]
    return 100 * int(right) / int(told)


def times_of(contender):
    """Its time over that of the first contender, which ran in turns with it."""
    return lambda out: selected(out.rows, {"peer": contender})[0]["ratio"]["median"]


PLUGIN = "build/plugin/libnccl-net-riffle.so"
NICS = ("build/tools/riffle bench --json {json} --profile two-nics4 --fabric live "
        f"--plugin both={PLUGIN} --plugin one={PLUGIN} --settings one:RIFFLE_SOCKET_IFNAME==eth0 --sizes ")

# All processors have other work; it ends with the run.
BUSY = ("trap 'kill $(jobs -p)' EXIT; for i in $(seq $(nproc)); do python3 -c 'while True: pass' & done; ")

AREA = Area(
    title="Networks found live", minutes=40, targets=("riffle", "riffle_plugin", "riffle_unit_tests", "riffle_sim_tests"),
    about="8 MiB after 20 all-reduces (wrong files: 30), in turns on one emulated network with the same job told by a file and with forced plans. Fixed: the "
          "networks `plain-*` of bench/profiles, emulated as plain scripts do. Random: `random:1` to `random:68`, those with a policer left out. "
          "Racks count as right if those that limit anything are found; a plan is as good at 1.03 times the time of the one from the file. "
          "Where times differ by more than 15 % new jobs run with twice as many all-reduces, and ratios are of their total times. "
          "Load: of this machine's processors while all-reduces run.",
    runs=[
        Run("fixed", CHECK + "fixed" + kept("fixed"), figures("fixed", 100),
            quick=CHECK + f"plain-slow5 {SHORT} --json {{json}}", limit_s=7200),
        Run("random", CHECK + "--seeds 1-68" + kept("random"), figures("random", 95),
            quick=CHECK + f"--seeds 2 {SHORT} --json {{json}}", is_long=True, limit_s=6 * 3600),
        Run("wrong-file", CHECK + WRONG + "--warmup 30" + kept("wrong-file"),
            [Figure(f"file with {words}: times the bound",
                    printed(rf"worst x of {name}: ([0-9.]+)"), at_most(1.15)) for name, words in WRONG_FILES.items()],
            quick=CHECK + WRONG + "--warmup 2 --iters 1 --json {json}", limit_s=7200),
        steady("uniform8", "`uniform8`", ""),
        steady("uniform8-busy", "`uniform8`, processors busy", BUSY),
        Run("ring16", CHECK + "plain-uniform16 --plans nccl --iters 15" + kept("ring16"), [
            Figure("`plain-uniform16`: time over that of NCCL's own choice of ring and tree", printed(r"worst live/nccl: ([0-9.]+)"), at_most(1.05))],
            quick=CHECK + "plain-uniform16 --plans nccl --warmup 2 --iters 1 --json {json}"),
        Run("two-nics", NICS + "16M --rounds 6", [
            Figure("`two-nics4`: times as fast with both NICs as with one", times_of("one"), at_least(1.8))],
            quick=NICS + "4M --rounds 1"),
        units("simulated", "RandomNetworks.*", [
            Figure("1,000 simulated networks of 4 to 14 nodes, unfair sharing and noise: racks right or a plan as good",
                   printed(r"of 4 to 14 nodes: racks or plan (\d+)"), at_least(950), digits=0),
            Figure("1,000 simulated networks: times as long as told by a file, 95 % within",
                   printed(r"of 4 to 14 nodes: .*time ([0-9.]+) at 95 %"), at_most(1.10), digits=3),
            Figure("1,000 simulated networks: times as long as told by a file, worst, before any correction",
                   printed(r"of 4 to 14 nodes: .*95 %, ([0-9.]+) at most")),
            Figure("of racks reported with a confidence of 80 % and more: right, percent",
                   sure_and_right, at_least(80), digits=1),
            Figure("50 simulated networks of 15 to 256 nodes: times as long as told by a file, 95 % within",
                   printed(r"of 15 to 256 nodes: .*time ([0-9.]+) at 95 %"), at_most(1.10), digits=3),
            Figure("racks of 16 and 32 with ranks in turn, 128 to 512 nodes: found",
                   passed("RandomNetworks[.]SmallRacks"), at_least(1), digits=0)]),
        units("corrected", "FoundNetworks.*", [
            Figure("1,000 simulated of 4 to 14 nodes, corrected: at most 1.10 times as long as told by a file",
                   printed(r"networks: within 1.10 (\d+)"), at_least(950), digits=0),
            Figure("1,000 simulated, corrected: times as long as told by a file, worst",
                   printed(r"over 1.25 \d+, worst ([0-9.]+)"), at_most(1.25), digits=3),
            Figure("1,000 simulated, corrected: over 1.05 times the best of ring, tree, direct",
                   printed(r"; beaten (\d+)"), at_most(0), digits=0),
            Figure("1,000 simulated, corrected: time over the best of ring, tree, direct, worst",
                   printed(r"beaten \d+, by ([0-9.]+)"), at_most(1.05), digits=3)],
              program="simulation/riffle_sim_tests"),
        units("recorded", "RecordedRounds.*", [
            Figure("rounds recorded on networks in the plain manner, racks found: tests passed of 6",
                   passed("RecordedRounds[.]"), at_least(6), digits=0)]),
    ])
