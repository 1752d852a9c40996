"""Sparse sums of gradients beside exact mode and beside published schedules."""
import statistics

from table import (TIME_TO_ACCURACY, Area, Before, Figure, Run, at_least, at_most, cell, cell_range, interval_of_median, passes, ratio, rows,
                   times_as_fast)

BENCH = "build/tools/riffle bench --json {json} --sizes 32M --iters 20 "
TRAIN = f"{TIME_TO_ACCURACY}--target 0.93 --profile slow8 --limit-s 3000"


def call(profile, limit, before):
    command = BENCH + f"--profile {profile} --sparse 0.01 --peers riffle-exact"
    return Run(profile, command, [
        Figure(f"`{profile}`, 1 %: times as fast as exact", times_as_fast("riffle-exact"),
               at_least(limit) if limit else None, digits=1, before=Before(before))],
        quick=command.replace("32M", "1M").replace("--iters 20", "--iters 2"))


def training(name, claim, arguments, steps, mode, limit, before=("", "")):
    """`steps`: of exact training and of the mode; `before`: points lost, and their upper limit."""
    simulate = ("/usr/bin/python3 test/training/simulate.py --task digits-mlp --folds 0 "
                f"--library build/test/training/libriffle_trainer.so --output {{tmp}} {arguments} ")
    commands = [f"{simulate}--modes {one} --steps {count}" for one, count in zip(("exact", mode), steps)]
    return Run(name, " && ".join([*commands, "/usr/bin/python3 test/training/report.py {tmp}/*.json"]), [
        Figure(f"digits, {claim}: points lost{words}", cell(column, mode), at_most(limit) if limit is not None else None,
               before=Before(old) if old else None)
        for words, column, old in (("", "worse than exact, points", before[0]),
                                   (", 95 % upper limit", "95 % upper limit", before[1]))], is_long=True, is_timed=False)


def contenders(nodes):
    """Ours and others: in one piece, and in chunks, where that is faster, of a size that grows with the nodes."""
    kib = 256 * nodes
    chunk = f"{kib // 1024}M" if kib % 1024 == 0 else f"{kib}K"
    return (("spardl-reuse", f"spardl-reuse/{chunk}"),
            ("oktopk", "oktopk/8M", f"oktopk/{chunk}", "gtopk", f"gtopk/{chunk}", "topkdsa", f"topkdsa/{chunk}",
             "topka", f"topka/{chunk}"))


def pairs(ours, others):
    """Times of our fastest over those of the fastest other, iteration by iteration."""
    def value(out):
        mine, theirs = (min((row for row in out.rows if row.get("scheme") in schemes), key=lambda row: row["time_us"])
                        for schemes in (ours, others))
        return [a / b for a, b in zip(mine.get("samples_us", []), theirs.get("samples_us", []), strict=True)]
    return value


def schedules(profile, nodes=None):
    """SparDL selecting as the plugin does, in turns with the others, on the same gradients."""
    ours, others = contenders(nodes or (16 if profile == "mixed16" else 8))
    command = (BENCH + f"--profile {profile} {f'--nodes {nodes} ' if nodes else ''}"
               f"--sparse-peers {','.join(ours + others)}")
    name = f"{profile}-{nodes}" if nodes else profile
    found = pairs(ours, others)
    return Run(f"schedules-{name}", command, [
        Figure(f"`{profile}`{f', {nodes} nodes' if nodes else ''}: SparDL over the best other, time",
               lambda out: statistics.median(found(out)), at_most(1), digits=3,
               spread=lambda out: interval_of_median(found(out)))])


AREA = Area(
    title="Sparse sums", minutes=20,
    about="The largest hundredth of 32 MiB of gradients per call; the rest waits ([sparse.md](sparse.md)). Of the schedules in turns SparDL and Ok-Topk "
          "reuse thresholds of the call before, as published or as the plugin does; the others select exactly. All select within the clock. SparDL has "
          "the teams and the order of nodes that the plugin's planner takes when it is told the network. Medians of 20 pairs of calls and their 95 % "
          "interval, all of one run; rows without one are older, ratios of medians, beside an Ok-Topk that added up before it sent on. What is within 5 % "
          "of 1 is a draw.",
    targets=("riffle", "riffle_plugin", "riffle_trainer", "riffle_unit_tests", "riffle_sim_tests"),
    runs=[
        call("uniform8", 8, "12.2"), call("racks8", None, "14.0"), call("mixed16", None, "11.7"),
        Run("auto-fast2", BENCH + "--profile fast2 --sparse auto:0.01 --peers riffle-exact", [
            Figure("`auto` on `fast2`, where dense wins: time over exact's",
                   ratio(rows("time_us", peer="riffle"), rows("time_us", peer="riffle-exact")),
                   before=Before("exact chosen, 4 of 4"))]),
        *(schedules(profile) for profile in ("uniform8", "racks8", "racks8-ordered", "straggler8", "mixed16")),
        *(schedules("uniform8", nodes) for nodes in (6, 14, 16)),
        *(schedules("slow8", nodes) for nodes in (14, 16)),  # 100 Mbit/s: not limited by two processors
        Run("accuracy-slow8", "for seed in 0 1 2 3 4; do "
            f"{TRAIN} --modes exact --steps 250 --score-every 10 --seeds $seed && "
            f"{TRAIN} --modes sparse-0.01 --steps 1000 --score-every 20 --seeds $seed "
            "--set RIFFLE_WARMUP_STEPS=4 --set RIFFLE_SPARSE_RAMP=12 || exit 1; done > {tmp}/tables; "
            "/usr/bin/python3 test/training/time_to_accuracy.py --output {tmp} --target 0.93 --json {json}", [
                Figure("`slow8` (100 Mbit/s), 1 %: times as fast to accuracy 0.93",
                       cell("times as fast, median (worst)", "sparse-0.01"), at_least(5), digits=1,
                       spread=cell_range("95 % of the geometric mean", "sparse-0.01"))], is_long=True, limit_s=5400),
        training("loss-sgd", "SGD, 1 %, 2,000 steps", "--seeds 0-9", (2000, 2000), "sparse-0.01", 0.5, ("-0.50", "-0.09")),
        training("loss-adam", "Adam, 1 %, 1,125 steps, exact 450", "--seeds 0-9 --optimizer adam", (450, 1125),
                 "sparse-0.01", 0.5, ("-0.36", "-0.12")),
        training("loss-adam-even", "Adam, 1 %, 1,125 steps, exact as many", "--seeds 0-9 --optimizer adam", (1125, 1125),
                 "sparse-0.01", None),
        training("loss-ef21", "SGD, 1 %, ef21, 2,000 steps", "--seeds 0-4", (2000, 2000), "sparse-0.01-ef21", None,
                 ("+83.83", "+88.51")),
        Run("conservation", "ctest --test-dir build -R 'Sparse' --no-tests=error", [
            Figure("gradients = results + residuals; same bits on all nodes", passes(), unit="passes",
                   before=Before("passes"))], limit_s=1200),
    ])
