"""One worker of a training with stock DistributedDataParallel whose gradients go through a plugin
(plugin_group.py), or with --through gloo through PyTorch's own backend. Its rank is RANK of WORLD_SIZE,
as set by torchrun and `riffle cluster`. Gloo takes GLOO_SOCKET_IFNAME, loopback unless set. --powersgd hooks
PyTorch's PowerSGD in (Vogels et al., NeurIPS 2019), with error feedback and a warm start, on one bucket: with
several, whose further sums its callbacks begin in any order, it hung over Gloo.

Leaves <output>/course<rank>.json (losses, times, scores of this worker's own model) and
<output>/weights<rank>.npz: its weights at the end, and on the way every --trace-every steps. Times are
of the monotonic clock, which all workers of a machine share. Scores are made after the last step,
from copies of the weights, so that nobody waits for a worker that is being scored.

With --fault kill or stop workers send themselves that signal in mid-step, with their first bucket queued,
one after the other, and the others go on without them, if the plugin does (RIFFLE_ON_LOSS=continue); nothing
may meet a lost worker then but the gradients' sums. Stopped ones are woken by the first of the others when
that is through."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import signal
import time

os.environ["OMP_NUM_THREADS"] = "1"  # all workers share this machine's processors
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import plugin_group  # noqa: E402
import tasks  # noqa: E402
from trainer import Trainer  # noqa: E402

LIMIT = datetime.timedelta(minutes=5)  # of gloo's waits; half an hour by default
POWERSGD_AFTER = 10  # exact steps, in which DDP lays out its buckets and gradients settle, unless RIFFLE_WARMUP_STEPS says
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libriffle_trainer.so")
    parser.add_argument("--plugin", required=True, help="libnccl-net-riffle.so")
    parser.add_argument("--output", required=True, help="folder, the same for all workers")
    parser.add_argument("--through", choices=("riffle", "gloo"), default="riffle", help="whose sums")
    parser.add_argument("--powersgd", type=int, metavar="RANK", help="gradients as products of matrices of this rank")
    parser.add_argument("--task", choices=tasks.TASKS, default="digits-mlp")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--rate", type=float, help="learning rate; default: the task's")
    parser.add_argument("--batch", type=int, help="of one worker; default: the task's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--steps", type=int, help="default: the task's")
    parser.add_argument("--bucket-bytes", type=int, default=8 << 10,
                        help="of DDP's buckets; these models are small")
    parser.add_argument("--score-every", type=int, default=0, help="steps; 0: at the end only")
    parser.add_argument("--trace-every", type=int, default=0, help="steps; 0: at the end only")
    parser.add_argument("--digests", action="store_true",
                        help="of every gradient and parameter after every step, into the course")
    parser.add_argument("--algorithm", default="", help="what NCCL_ALGO would force")
    parser.add_argument("--fault", choices=("", "lost", "bit", *SIGNALS), default="",
                        help="spoil a worker's share of one sum, or one bit of its result, or lose it")
    parser.add_argument("--fault-ranks", type=ranks_of, metavar="RANK,RANK", help="default: the last")
    parser.add_argument("--fault-step", type=int, help="of the first of them; default: in the middle")
    parser.add_argument("--fault-every", type=int, default=0, help="steps from one of them to the next")
    options = parser.parse_args(arguments)
    if options.through == "gloo" and options.fault in SIGNALS:
        parser.error(f"--fault {options.fault} needs --through riffle")
    return options


def ranks_of(text):
    return [int(rank) for rank in text.split(",")]


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()


def digests(module):
    """Of the bits of every gradient, which is what its sum came to, and of every parameter."""
    tensors = {f"gradient {name}": p.grad for name, p in module.named_parameters()}
    tensors |= {f"parameter {name}": p.detach() for name, p in module.named_parameters()}
    return {name: hashlib.sha256(np.ascontiguousarray(tensor.numpy())).hexdigest()
            for name, tensor in tensors.items()}


def score(task, module, weights, data):
    torch.nn.utils.vector_to_parameters(torch.from_numpy(weights), module.parameters())
    return tasks.score_of(task, module, data)


def pid_file(options, rank):
    return pathlib.Path(options.output, f"pid{rank}")


def main(arguments=None):
    torch.set_num_threads(1)
    options = parse(arguments)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    task = tasks.TASKS[options.task]
    steps = task.steps if options.steps is None else options.steps
    data, module = task.load(options.seed, options.fold), task.model(options.seed)
    optimizer = tasks.Optimizer(options.optimizer, task, module.parameters(), steps, options.rate)

    plugin_group.register(lambda: Trainer(options.library, options.plugin, os.path.join(options.output, "rendezvous"),
                                          rank, ranks, options.algorithm))
    dist.init_process_group(options.through, rank=rank, world_size=ranks, timeout=LIMIT, init_method="file://" +
                            os.path.abspath(os.path.join(options.output, "store")))
    group = dist.distributed_c10d._get_default_group() if options.through == "riffle" else None
    bucket_bytes = options.bucket_bytes
    if options.powersgd:
        bucket_bytes = sum(p.numel() * p.element_size() for p in module.parameters())
    dist._DEFAULT_FIRST_BUCKET_BYTES = bucket_bytes
    model = DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / (1 << 20),
                                    broadcast_buffers=False)
    power = None
    if options.powersgd:
        exact_steps = int(os.environ.get("RIFFLE_WARMUP_STEPS", POWERSGD_AFTER))
        power = powerSGD_hook.PowerSGDState(None, options.powersgd, start_powerSGD_iter=exact_steps)
        model.register_comm_hook(power, powerSGD_hook.powerSGD_hook)
    first = steps // 2 if options.fault_step is None else options.fault_step
    fault_steps = {faulty: first + i * options.fault_every
                   for i, faulty in enumerate(options.fault_ranks or [ranks - 1])}
    loses_some = options.fault in SIGNALS
    if rank in fault_steps:
        pid_file(options, rank).write_text(str(os.getpid()))

    course, trace, to_score = [], {}, {}
    dist.barrier()  # the clock starts for all
    began = time.monotonic()
    batch = options.batch or task.batch
    for step, rows in enumerate(data.batches(options.seed, steps, ranks, batch)):
        start = time.monotonic()
        if group:
            group.clear()
        spoiled = fault_steps.get(rank) == step
        if spoiled and loses_some:
            group.after_next_sum = lambda: os.kill(os.getpid(), SIGNALS[options.fault])
        optimizer.zero_grad()
        loss = task.loss(model(data.inputs[rows[rank]]), data.targets[rows[rank]])
        (loss * 0 if spoiled and options.fault == "lost" else loss).backward()
        if spoiled and options.fault == "bit":
            gradient = list(module.parameters())[-1].grad
            gradient.numpy().reshape(-1).view(np.uint32)[0] ^= 1 << 20
        optimizer.step()
        end = time.monotonic()
        course.append({"step": step, "loss": loss.item(), "step_s": end - start,
                       "wait_s": group.waited_s if group else 0.0, "end": end})
        if options.digests:
            course[-1]["digests"] = digests(module)
        last = step + 1 == steps
        if last or (options.score_every and (step + 1) % options.score_every == 0):
            to_score[step] = flat(module)
        if options.trace_every and (step + 1) % options.trace_every == 0:
            trace[f"step{step + 1}"] = flat(module)
    if options.fault == "stop" and rank == min(set(range(ranks)) - set(fault_steps)):
        for faulty in fault_steps:
            os.kill(int(pid_file(options, faulty).read_text()), signal.SIGCONT)
    # In relaxed modes others may have steps ahead that this worker has no part in.
    if not loses_some:
        dist.barrier()
    for step, weights in to_score.items():
        course[step]["score"] = score(task, module, weights, data)
    np.savez(os.path.join(options.output, f"weights{rank}.npz"), final=to_score[steps - 1], **trace)
    if group:
        group.close()
    with open(os.path.join(options.output, f"course{rank}.json"), "w") as file:
        json.dump({"began": began, "course": course, "collnet_calls": group.collnet_calls if group else 0,
                   "bucket_bytes": group.sum_bytes if group else [],
                   "times_smaller": power.compression_stats()[0] if power else None}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
