"""The shared object beside the one of commit 8d31140, from before the rooms, in one run and in turns. Its
source is taken from the repository's history and built once, in build/before."""
from table import Area, Figure, Run, at_most, passes

BEFORE = "build/before/plugin/libnccl-net-riffle.so"
NOW = "build/plugin/libnccl-net-riffle.so"
PREPARE = (f"test -f {BEFORE} || {{ mkdir -p build/before/source && git archive 8d31140 | tar -x -C build/before/source && "
           "cmake -G Ninja -S build/before/source -B build/before -DCMAKE_BUILD_TYPE=Release >/dev/null && "
           "cmake --build build/before --target riffle_plugin; }")


def beside(name, profile, words, size, rounds):
    command = f"build/tools/riffle bench --json {{json}} --profile {profile} --fabric file --plugin before={BEFORE} --plugin now={NOW} "
    return Run(name, command + f"--sizes {size} --rounds {rounds}", [
        Figure(f"`{profile}`, {words}: time over the build before's, {rounds} rounds",
               lambda out: [r["ratio"]["median"] for r in out.rows if r["peer"] == "now"][0], at_most(1.02), digits=3)],
        quick=command + "--sizes 8 --rounds 1", prepare=PREPARE)


AREA = Area(
    title="Unchanged for the job", minutes=10, targets=("riffle", "riffle_plugin", "riffle_trainer"),
    about="Commit 8d31140 is the last before the folders became rooms. Medians of the trials of a round, then of all rounds.",
    runs=[*(beside(profile, profile, "16 MiB", "16M", rounds)
            for profile, rounds in (("uniform8", 16), ("racks8", 12), ("mixed16", 12), ("fast2", 30))),
          *(beside(f"{profile}-small", profile, "8 B", "8", 60)
            for profile in ("uniform8", "racks8", "mixed16", "fast2")),
          Run("same-bits", f"scripts/same-bits {BEFORE} {NOW}", [
              Figure("25 training steps by ring, direct and grid: the same bits as the build before", passes(),
                     unit="passes")], prepare=PREPARE)])
