"""Lost nodes: how soon every survivor has an error, or goes on."""
from table import Area, Before, Figure, Run, at_most, passes, printed, ratio, rows

BENCH = "build/tools/riffle bench --profile loss8 "
LAST = r"node \d+ %s in mid-collective: \d+ of \d+ survivors %s, the last after ([0-9.]+) s"


def tests(name, claim, pattern, minutes=1):
    return Run(name, f"ctest --test-dir build -R '{pattern}' --no-tests=error", [
        Figure(claim, passes(), unit="passes", before=Before("passes"))], limit_s=600 * minutes)


PRICES = ((8, "8 B", "1.56 (1.13 to 1.65)"), (4096, "4 KiB", "1.45 (1.26 to 1.50)"),
          (16 << 20, "16 MiB", "1.00 (1.00 to 1.02)"))


def price():
    command = "build/tools/riffle bench --profile uniform8 --sizes 8,4K,16M --iters 9 "
    return Run("price", f"{command} --on-loss error --json {{json}} && "
               f"{command} --on-loss continue --json {{json2}}", [
        Figure(f"`continue`, nothing lost, {words}: time over `error`'s",
               ratio(rows("time_us", bytes=size, file=2), rows("time_us", bytes=size, file=1)),
               before=Before(before, "2026-11-23")) for size, words, before in PRICES], repeat=3)


AREA = Area(
    title="Lost nodes", minutes=20,
    about="`RIFFLE_ON_LOSS=error` (default) and `continue`; one of 8 nodes is killed, one stopped.",
    targets=("riffle", "riffle_plugin", "riffle_unit_tests", "riffle_threads_tests", "riffle_sim_tests",
             "riffle_host_tests"),
    runs=[
        Run("error", BENCH + "--sizes 32M --iters 5 --peer-timeout 3", [
            Figure("killed, timeout 3 s: last survivor's error after, s",
                   printed(LAST % ("killed", "had an error"), max), at_most(4), before=Before("0.02")),
            Figure("stopped, timeout 3 s: last survivor's error after, s",
                   printed(LAST % ("stopped", "had an error"), max), at_most(4),
                   before=Before("2.95"))], repeat=3),
        Run("continue", BENCH + "--on-loss continue --sizes 32M --iters 5 --peer-timeout 5", [
            Figure("killed: last survivor's result after, s",
                   printed(LAST % ("killed", "have the result"), max),
                   before=Before("2.37 (1.44 undisturbed)")),
            Figure("stopped, timeout 5 s: last survivor's result after, s",
                   printed(LAST % ("stopped", "have the result"), max),
                   before=Before("8.0"))], repeat=3),
        price(),
        tests("faults", "killed, stopped, forked: one error, or the others go on", "^FaultsTest|^PeerLoss|^SurvivorsTest"),
        tests("agreement", "35,000 random cases: never two sides go on", "^Regroup"),
        tests("simulated", "1,000 random losses, whole racks, modes, connect, min rate",
              "LossesTest|ModeLosses|RackLosses|ConnectLosses|MinRate", minutes=5),
    ])
