"""What strangers who connect to a node's listeners cost a job that works."""
from table import Area, Figure, Run, at_most, printed

COMMAND = "build/bench/riffle_strangers_bench --plugin build/plugin/libnccl-net-riffle.so --json {json} "

AREA = Area(
    title="Strangers", minutes=6, targets=("riffle_strangers_bench", "riffle_plugin"),
    about="Four nodes of 400 Mbit/s; from one address outside the job, strangers of five kinds (silent, half open, garbage, replayed handshakes, gone at "
          "once) connect to the first node, whose link their packets take 1.5 % of; all-reduces of 16 MiB with them and without, in turns.",
    runs=[Run("flood", COMMAND, [
        Figure("10,000 connections a second: time over that without", printed(r"without: median ([0-9.]+) of"), at_most(1.02), digits=3),
        Figure("... of the kind that costs most, median", printed(r"dearest kind: [A-Za-z]+, ([0-9.]+)"), digits=3),
        Figure("... connections a second", printed(r"pairs; (\d+) strangers a second"), digits=0),
        Figure("... wrong elements", printed(r"a second; (\d+) wrong"), at_most(0), digits=0)],
        quick=COMMAND + "--rounds 1 --iters 1 --mib 1")])
