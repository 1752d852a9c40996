"""Small all-reduces, where messages and wake-ups count and not the network's rates."""
from table import Area, Before, Figure, Run, at_least, rows, times_as_fast

NAMES = {8: "8 B", 65536: "64 KiB"}
OURS = {8: "0.27", 65536: "2.58"}
DATE = "2026-11-23"
COMMAND = "build/tools/riffle bench --json {json} --profile uniform8 "

AREA = Area(
    title="Small all-reduces", minutes=8,
    about="Medians of 40 calls on `uniform8`; all peers on the same two processors.",
    targets=("riffle", "riffle_plugin", "riffle_bench_gloo", "riffle_bench_mpi"),
    runs=[Run("uniform8", COMMAND + "--sizes 8,1K,4K,16K,32K,64K --iters 40 --peers openmpi,nccl-ring,nccl-best,gloo",
              [Figure(f"{NAMES[s]}, ms", rows("time_us", scale=1e-3, peer="riffle", bytes=s),
                      before=Before(OURS[s], DATE)) for s in NAMES]
              + [Figure("times as fast as Open MPI, worst size", times_as_fast("openmpi"),
                        at_least(0.97), before=Before("0.99", DATE)),
                 Figure("times as fast as NCCL's ring, worst size", times_as_fast("nccl-ring"),
                        at_least(0.97), before=Before("2.1", DATE)),
                 Figure("times as fast as NCCL's better of ring and trees, worst size", times_as_fast("nccl-best"),
                        at_least(0.97)),
                 Figure("times as fast as Gloo, worst size", times_as_fast("gloo"), at_least(0.97),
                        before=Before("2.3", DATE))],
              quick=COMMAND + "--sizes 8,4K --iters 5 --peers nccl-ring", repeat=3)])
