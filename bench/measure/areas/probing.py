"""What is found out about an emulated network without a file, against what tc was set to."""
from table import Area, Before, Figure, Run, at_least, printed


def check(profile):
    """Runs in which all rates, or the racks, are right: the lesser of the two."""
    command = f"bench/probe_check.py --iters 1 --sizes 8M {profile} --runs "
    return Run(profile, command + "20", [
        Figure(f"`{profile}`: runs of 20, rates within 10 % and racks right",
               printed(r"(?:10 %|racks right) in (\d+) of", min), at_least(19), digits=0, before=Before("20"))],
        quick=command + "1")


AREA = Area(
    title="Probing", minutes=12, targets=("riffle", "riffle_plugin", "riffle_unit_tests"),
    runs=[check(profile) for profile in ("racks8", "straggler8", "mixed16")] + [
        Run("model", "RIFFLE_TEST_RUNS=200 build/test/riffle_unit_tests --gtest_filter=Survey.*", [
            Figure("200 random racks with noise: all right in", printed(r"actual: (\d+) vs 190", min),
                   at_least(190), digits=0, before=Before("188"))], is_long=True, is_timed=False)])
