"""What strangers that connect to a node's listeners cost a job that works."""
from table import Area, Figure, Run, at_least, at_most, printed

COMMAND = "build/bench/riffle_strangers_bench --plugin build/plugin/libnccl-net-riffle.so --json {json} "

AREA = Area(
    title="Strangers", minutes=5, targets=("riffle_strangers_bench", "riffle_plugin"),
    about="Four nodes of 400 Mbit/s; strangers from one address outside the job try to connect to the first one, 1.5 % of whose link their packets would "
          "take; its doors are closed, as it expects no peer. All-reduces of 16 MiB with them and without, in turns.",
    runs=[Run("flood", COMMAND, [
        Figure("10,000 connections a second: time over that without", printed(r"without: median ([0-9.]+) of"), at_most(1.02), digits=3),
        Figure("... that came, a second", printed(r"pairs; (\d+) strangers a second"), at_least(9000), digits=0),
        Figure("... wrong elements", printed(r"a second; (\d+) wrong"), at_most(0), digits=0)],
        quick=COMMAND + "--rounds 2 --iters 1 --mib 1")])
