"""Trainings on GPUs with and without Riffle, and checks of results there. What another machine wrote is taken in by
`scripts/measure gpu:training --from FILE` (and gpu:all-reduce, from the same file)."""
from table import Area, Figure, Run, at_most

COMMAND = "test/gpu/run --riffle build/tools/riffle {} --json {{json}}"
# The nodes of an emulated cluster share the GPU; each is started as a launcher would start it.
CLUSTER = "build/tools/riffle cluster --profile test/gpu/racks8.toml -- env LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 "


def summary(out):
    """Of a run that says something of Riffle: a try over gloo or with tiny models does not."""
    document = out.rows[0]
    if document["schema"] != "riffle-gpu-1":
        raise ValueError(f"schema {document['schema']}; riffle-gpu-1 is read")
    if document["options"]["backend"] != "nccl" or document["options"]["tiny"]:
        raise ValueError("backend nccl and models of full size are needed")
    return document["summary"]


def training(words, model):
    """Steps per second over those of NCCL alone, and the range of the rounds."""
    def spread(out):
        rounds = summary(out)[model]["times_as_fast_by_round"]
        return (min(rounds), max(rounds)) if len(rounds) > 1 else None
    return Figure(f"{words}: times as fast as NCCL alone", lambda out: summary(out)[model]["times_as_fast"], spread=spread)


def run(name, options, figures, start=""):
    command = start + COMMAND.format(options)
    return Run(name, command, figures, quick=command + " --rounds 1 --steps 5 --warm-up 2", needs=("nvidia-smi",),
               limit_s=7200)


def cases(verdict):
    return lambda out: sum(case["verdict"] == verdict for case in out.rows[0]["cases"])


def check(name, what):
    command = COMMAND.format(f"--checks {name}")
    return Run(f"check-{name}", command, [
        Figure(f"{what}: cases passed", cases("OK"), digits=0),
        Figure(f"{what}: cases failed", cases("FAILED"), at_most(0), digits=0)],
        needs=("nvidia-smi",), is_timed=False, limit_s=7200)


AREA = Area(
    title="On a GPU", minutes=45,
    about="Stock DistributedDataParallel in turns with and without Riffle, and cases with checked results, so far on one GPU that all ranks share: each "
          "is a node of its own for NCCL, and their kernels take turns. Over the loopback interface, where Riffle has nothing to gain, times say little. "
          "The figures of training and all_reduce_perf of 2026-11-27 are of shorter runs than the commands ask for, as the GPU was lent for minutes: one "
          "round of 12 steps, sizes up to 64 MiB.",
    runs=[run("training", "--nccl-tests=", [
              training("ResNet-50, 32 images per rank, loopback", "resnet50"),
              training("GPT-2 (124 M), 4 x 1,024 tokens per rank, loopback", "gpt2")]),
          run("all-reduce", "--models", [
              Figure("all_reduce_perf, largest size, loopback: times as fast as NCCL alone",
                     lambda out: summary(out)["all_reduce"][-1]["times_as_fast"]),
              Figure("all_reduce_perf: wrong elements", lambda out: summary(out)["wrong_elements"], at_most(0),
                     digits=0)]),
          run("racks8", "--models resnet50 --images 8 --rounds 2 --steps 4 --warm-up 2", [
              training("ResNet-50, 2 racks of 4 (`racks8`, four times its rates)", "resnet50")], start=CLUSTER),
          check("all_reduce", "nccl-tests: COLLNET and NET, types, operators, channels, settings"),
          check("operations", "torch.distributed: exact and relaxed sums, communicators, losses"),
          check("ddp", "stock DDP training: exact and relaxed, lost ranks")])
