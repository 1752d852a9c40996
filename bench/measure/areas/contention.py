"""A foreign flow takes three quarters of one node's link in mid-job and leaves again."""
from table import Area, Before, Figure, Run, at_most, ratio, rows, selected

COMMAND = "build/tools/riffle bench --json {json} --profile contention8 --peers riffle-fixed --sizes 32M --phases "


def moments(out, peer, phase):
    """Time over the bound of the network as it is; phase 0 before the flow, 1 with it, 2 after it."""
    series = selected(out.rows, {"peer": peer})[0]["series"]
    first = next(i for i, m in enumerate(series) if m["neighbour"])
    after = next(i for i in range(first, len(series)) if not series[i]["neighbour"])
    part = (series[:first], series[first:after], series[after:])[phase]
    return [m["time_us"] / m["bound_us"] for m in part]


def settled(peer, phase):
    """The worst of the last five of a phase."""
    return lambda out: max(moments(out, peer, phase)[-5:])


def until(peer, phase, limit):
    """All-reduces of a phase up to the last that is over the limit."""
    def value(out):
        over = [i for i, x in enumerate(moments(out, peer, phase)) if x > limit]
        return over[-1] + 1 if over else 0
    return value


AREA = Area(
    title="Contention", minutes=5,
    about="All-reduces of 32 MiB: 5 before the flow, 20 with it, 20 after it; time over the bound of the network as it is.",
    targets=("riffle", "riffle_plugin"),
    runs=[
        Run("contention8", COMMAND + "5,20,20", [
            Figure("with the flow, settled", settled("riffle", 1), at_most(1.2), before=Before("1.02")),
            Figure("all-reduces until it has settled", until("riffle", 1, 1.2), at_most(20), digits=0,
                   before=Before("4")),
            Figure("after the flow, settled", settled("riffle", 2), at_most(1.15), before=Before("1.04")),
            Figure("with the flow, plan kept as it was", settled("riffle-fixed", 1), before=Before("1.78"))],
            quick=COMMAND + "2,6,6", repeat=3),
        Run("overhead", "build/tools/riffle bench --json {json} --profile uniform8 --peers riffle-fixed "
            "--sizes 16M,32M --iters 9", [
                Figure("`uniform8`, 16 MiB: time with replanning over without", ratio(
                    rows("time_us", peer="riffle", bytes=16 << 20), rows("time_us", peer="riffle-fixed", bytes=16 << 20)),
                    at_most(1.02), digits=3, before=Before("1.001"))], repeat=3)])
