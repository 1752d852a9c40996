"""That sums are right: the engine on reordered frames, recorded runs of real NCCL, training."""
from table import Area, Before, Figure, Run, at_least, passes, printed


def tests(name, claim, pattern, **more):
    return Run(name, f"ctest --test-dir build -R '{pattern}' --no-tests=error", [
        Figure(claim, passes(), unit="passes", before=Before("passes"))], limit_s=1800, **more)


AREA = Area(
    title="Exactness", minutes=6, targets=("all",),
    runs=[
        tests("engine", "10,000 random cases on a network that reorders all frames", "^Engine"),
        tests("tcp", "200 random cases over TCP; 1,000 connects leave nothing behind", "^CommunicatorTest"),
        Run("replay", "ctest --test-dir build -R TraceReplay --no-tests=error", [
            Figure("recorded runs of NCCL 2.28.9 and 2.30.7 replayed, of 96",
                   printed(r"Test +#(\d+): .* Passed ", len),
                   at_least(96), digits=0, before=Before("96"))], is_timed=False),
        Run("house", "ctest --test-dir build -R '^style[.](rooms|words|pages)$' --no-tests=error", [
            Figure("at most 35 files a folder, no circle, no upward edge; words; lines of pages", passes(), unit="passes")]),
        tests("identity", "which buffer a call belongs to: 100,000 random jobs, never wrong", "^Identity"),
        tests("kernels", "kernels of all instruction sets: the same bits", "fuzz|^Reduce"),
        tests("training", "training through the plugin ends at one process's weights", "^training_")])
