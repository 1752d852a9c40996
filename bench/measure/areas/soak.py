"""Real processes for hours: random networks and settings, nodes stopped, cut off, slowed down, killed."""
from table import Area, Figure, Run, at_most, printed

COMMAND = "build/bench/riffle_soak --plugin build/plugin/libnccl-net-riffle.so --json {json} --minutes "

AREA = Area(
    title="Soak", minutes=125, targets=("riffle_soak", "riffle_plugin"),
    about="A finding is a sum that is wrong, differs between nodes or does not end, an error without a cause, a loss that is noticed too late or not at all, "
          "a node that ends by itself or does not end, and what is left open when communicators are closed.",
    runs=[Run("jobs", COMMAND + "120", [
        Figure("two hours of jobs with random faults: findings", printed(r"\d+ sums, (\d+) findings"), at_most(0), digits=0),
        Figure("... jobs", printed(r"(\d+) jobs, \d+ sums"), digits=0),
        Figure("... sums that were checked, on every node", printed(r"\d+ jobs, (\d+) sums"), digits=0)],
        quick=COMMAND + "1", limit_s=9000, is_long=True)])
