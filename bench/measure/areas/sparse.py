"""Sparse sums of gradients beside exact mode and beside published schedules."""
from table import Area, Before, Figure, Run, at_least, at_most, passes, printed, ratio, rows, times_as_fast

BENCH = "build/tools/riffle bench --json {json} --sizes 32M --iters 20 "


def call(profile, limit, before):
    command = BENCH + f"--profile {profile} --sparse 0.01 --peers riffle-exact"
    return Run(profile, command, [
        Figure(f"`{profile}`, 1 %: times as fast as exact", times_as_fast("riffle-exact"),
               at_least(limit) if limit else None, digits=1, before=Before(before))],
        quick=command.replace("32M", "1M").replace("--iters 20", "--iters 2"))


def training(name, claim, arguments, mode, before, limit):
    return Run(name, "python3 test/training/simulate.py --task digits-mlp --folds 0 "
               f"--library build/test/training/libriffle_trainer.so --output {{tmp}} {arguments} && "
               "python3 test/training/report.py {tmp}/*.json", [
        Figure(claim, printed(r"(?m)^\| " + mode + r" \|[^|]*\|[^|]*\|[^|]*\| ([-+0-9.]+) \|"),
               at_most(limit) if limit is not None else None, before=Before(before))], is_long=True, is_timed=False)


AREA = Area(
    title="Sparse sums", minutes=8,
    about="The largest hundredth of 32 MiB of gradients per call; the rest waits ([sparse.md](sparse.md)).",
    targets=("riffle", "riffle_plugin", "riffle_trainer", "riffle_unit_tests", "riffle_sim_tests"),
    runs=[
        call("uniform8", 8, "12.2"), call("racks8", None, "14.0"), call("mixed16", None, "11.7"),
        Run("auto-fast2", BENCH + "--profile fast2 --sparse auto:0.01 --peers riffle-exact", [
            Figure("`auto` on `fast2`, where dense wins: time over exact's",
                   ratio(rows("time_us", peer="riffle"), rows("time_us", peer="riffle-exact")),
                   before=Before("exact chosen, 4 of 4"))]),
        Run("schedules", BENCH + "--profile uniform8 --sparse-peers spardl,oktopk,gtopk,topkdsa,topka", [
            Figure("`uniform8`, SparDL's schedule over Ok-Topk's: whole time",
                   ratio(rows("time_us", scheme="spardl"), rows("time_us", scheme="oktopk")),
                   before=Before("1.39"))]),
        Run("accuracy-slow8", "python3 test/training/time_to_accuracy.py --plugin build/plugin/libnccl-net-riffle.so "
            "--library build/test/training/libriffle_trainer.so --riffle build/tools/riffle --batch 2 --rate 0.01 "
            "--target 0.95 --output {tmp} --profile slow8 --modes exact,sparse-0.01 --steps 1000 --score-every 20 "
            "--set RIFFLE_WARMUP_STEPS=4 --set RIFFLE_SPARSE_RAMP=12 --limit-s 3000", [
                Figure("`slow8` (100 Mbit/s), 1 %: times as fast to accuracy 0.95",
                       printed(r"(?m)^\| sparse-0.01 \|.*\| ([0-9.]+) \([0-9.]+\) \|"), at_least(5), digits=1,
                       before=Before("7.3 at least"))], is_long=True),
        training("loss-sgd", "digits, SGD, 1 %, 2,000 steps: points lost (limit)",
                 "--seeds 0-9 --modes exact,sparse-0.01 --steps 2000", "sparse-0.01", "-0.50 (-0.09)", 0.5),
        training("loss-adam", "digits, Adam, 1 %, 2.5 times the steps: points lost (limit)",
                 "--seeds 0-9 --modes exact,sparse-0.01 --optimizer adam --steps 1125", "sparse-0.01",
                 "-0.36 (-0.12)", 0.5),
        training("loss-ef21", "digits, SGD, 1 %, ef21: points lost (limit)",
                 "--seeds 0-4 --modes exact,sparse-0.01-ef21 --steps 2000", "sparse-0.01-ef21",
                 "+83.83 (+88.51)", None),
        Run("conservation", "ctest --test-dir build -R 'Sparse' --no-tests=error", [
            Figure("gradients = results + residuals; same bits on all nodes", passes(), unit="passes",
                   before=Before("passes"))], limit_s=1200),
    ])
