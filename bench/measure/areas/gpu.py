"""Trainings on GPUs, with and without Riffle. What another machine wrote is taken in by
`scripts/measure gpu:training --from FILE` (and gpu:all-reduce, from the same file)."""
from table import Area, Figure, Run, at_most

COMMAND = "test/gpu/run --riffle build/tools/riffle {} --json {{json}}"


def summary(out):
    """Of a run that says something of Riffle: a try over gloo or with tiny models does not."""
    document = out.rows[0]
    if document["schema"] != "riffle-gpu-1":
        raise ValueError(f"schema {document['schema']}; riffle-gpu-1 is read")
    if document["options"]["backend"] != "nccl" or document["options"]["tiny"]:
        raise ValueError("backend nccl and models of full size are needed")
    return document["summary"]


def times_as_fast(model):
    return lambda out: summary(out)[model]["times_as_fast"]


def run(name, options, figures):
    command = COMMAND.format(options)
    return Run(name, command, figures, quick=command + " --rounds 1 --steps 5 --warm-up 2", needs=("nvidia-smi",),
               limit_s=7200)


AREA = Area(
    title="Trainings on GPUs", minutes=30,
    about="Stock DistributedDataParallel in turns with and without Riffle. It has not run on a GPU so far.",
    runs=[run("training", "--nccl-tests=", [
              Figure("ResNet-50, 32 images per rank: times as fast as NCCL alone", times_as_fast("resnet50")),
              Figure("GPT-2 (124 M), 4 x 1,024 tokens per rank: times as fast as NCCL alone", times_as_fast("gpt2"))]),
          run("all-reduce", "--models", [
              Figure("all_reduce_perf, largest size: times as fast as NCCL alone",
                     lambda out: summary(out)["all_reduce"][-1]["times_as_fast"]),
              Figure("all_reduce_perf: wrong elements", lambda out: summary(out)["wrong_elements"], at_most(0),
                     digits=0)])])
