"""One rank of a training with stock DistributedDataParallel, which knows nothing of Riffle: no hook, no
setting of buckets. Started by `run` once per rank; rank 0 leaves the seconds of all steps as JSON.

Parameters and gradients are float32; on a GPU that has bfloat16 the forward pass is autocast
to it.
"""
import argparse
import json
import math
import os
import platform
import socket
import sys
import time

import torch
import torch.distributed as dist

import models

SKIPPED = 77


def device_of(options):
    if options.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        print(f"{sys.executable}: torch {torch.__version__} finds no GPU: a build of torch for CUDA is needed")
        sys.exit(SKIPPED)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def waited(device):
    """The time when all that was enqueued has ended."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def is_same_on_all_ranks(model, device):
    """Told by the sums of the parameters, one by one."""
    low = torch.stack([p.detach().sum(dtype=torch.float64) for p in model.parameters()]).to(device)
    high = low.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return torch.equal(low, high)


def train(task, count, device, options):
    torch.manual_seed(1)  # the same start in every process
    model = task.make().to(device)
    parameters = models.parameters_of(model)
    model = torch.nn.parallel.DistributedDataParallel(model, [device.index] if device.type == "cuda" else None)
    optimizer = task.optimizer(model.parameters())
    random = torch.Generator().manual_seed(100 + dist.get_rank())  # other data on every rank
    inputs, targets = (part.to(device) for part in task.batch(count, random))
    has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
    seconds, losses = [], []
    for _ in range(options.warm_up + options.steps):
        start = waited(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16):
            outputs = model(inputs)
        loss = task.loss(outputs, targets)
        loss.backward()
        optimizer.step()
        seconds.append(waited(device) - start)
        losses.append(loss.item())
    if not all(map(math.isfinite, losses)):
        sys.exit(f"the loss is not a finite number: {losses}")
    return {"parameters": parameters, "batch_per_rank": count, "warm_up_seconds": seconds[:options.warm_up],
            "seconds": seconds[options.warm_up:], "losses": losses,
            "is_same_on_all_ranks": is_same_on_all_ranks(model, device)}


def versions(device):
    gpu = device.type == "cuda"
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "python": platform.python_version(),
            "nccl": ".".join(map(str, torch.cuda.nccl.version())) if gpu else None}


def nodes_and_gpus(device):
    """The number of nodes as NCCL sees them, and the GPU of every rank."""
    node = os.environ.get("NCCL_HOSTID") or socket.gethostname()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    everywhere = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, (node, name))
    return {"nodes": len({node for node, _ in everywhere}), "gpu_of_rank": [name for _, name in everywhere]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("backend", "device", "output"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("steps", "warm-up", "images", "sequences"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    device = device_of(options)
    counts = {"resnet50": options.images, "gpt2": options.sequences}
    tasks = models.TINY if options.tiny else models.TASKS
    dist.init_process_group(options.backend)
    found = {"versions": versions(device), **nodes_and_gpus(device), "models": {}}
    for name in options.models:
        found["models"][name] = train(tasks[name], counts[name], device, options)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    dist.destroy_process_group()
    if int(os.environ["RANK"]) == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(found, file)


main()
