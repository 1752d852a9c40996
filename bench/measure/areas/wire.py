"""Riffle in front of another NCCL plugin (RIFFLE_NET): group plans over that library's connections, and what
passing NET through costs. The library is the strict one of the tests, over TCP between the nodes."""
from table import Area, Figure, Run, at_most, passes, printed, rows

PLUGIN = "build/plugin/libnccl-net-riffle.so"
# v11: the newest NET that the host side of the bench calls.
LIBRARY = "build/test/wire/libraries/libnccl-net-strict11.so"
BENCH = (f"build/tools/riffle bench --json {{json}} --plugin tcp={PLUGIN} --plugin library={PLUGIN} "
         f"--settings library:RIFFLE_NET=$PWD/{LIBRARY},RIFFLE_COLLNET=on,STRICT_NET_INTERFACE=eth0 --profile ")


def groups(profile):
    return Run(profile, BENCH + f"{profile} --sizes 16M", [
        Figure(f"`{profile}`, 16 MiB, group plans over a library's connections: x bound", rows("x_bound", peer="library"),
               at_most(1.10), digits=3),
        Figure(f"`{profile}`, 16 MiB, over Riffle's TCP in turns with that: x bound", rows("x_bound", peer="tcp"), at_most(1.05),
               digits=3)],
        quick=BENCH + f"{profile} --sizes 8 --rounds 1", repeat=3)


AREA = Area(
    title="Over another library's connections", minutes=12,
    about="`RIFFLE_NET` names the strict library of the tests, which moves messages over a TCP connection per direction and copies what it was not "
          "asked for yet; `RIFFLE_COLLNET=on`. Networks are found live.",
    targets=("riffle", "riffle_plugin", "riffle_wire_bench", "riffle_library_tests", "strict11"),
    runs=[groups("racks8"), groups("straggler8"), groups("mixed16"),
          Run("pass-through", f"build/bench/riffle_wire_bench {PLUGIN} $PWD/build/bench/libnull_net_v12.so", [
              Figure("a call of NET passed through: added, ns, the worst of test, isend, irecv", printed(r"most added: +([0-9.]+)"),
                     at_most(100))]),
          Run("lies", "RIFFLE_TEST_RUNS=1000 build/test/wire/riffle_library_tests --gtest_filter='*ThatLies*'", [
              Figure("1,000 seeded jobs over a library that lies: the right sum or an error that names it", passes(), unit="passes")],
              limit_s=1800)])
