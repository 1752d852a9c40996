"""Checks torch.distributed's collectives on one rank of many: exact results, one line at the end.

Started once per rank by operations.sh; without a GPU it runs on gloo, which checks this file but not
the plugin. Inputs are small integers, so that every type holds the sums.
With --lose it ends or stops rank 1 in the middle, and the others must fail rather than wait for ever.
With --cycles communicators come and go, and must leave no descriptor behind. With --relaxed the same
gradients' sizes are all-reduced step after step, as DDP does, with RIFFLE_SYNC set: what the ranks get
must add up (docs/policies.md), and everything beside it stay exact.
"""
import argparse
import os
import signal
import time

import torch
import torch.distributed as dist

TYPES = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64]
OPERATORS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
COUNTS = [1, 1000, 65537, 1 << 20]  # elements: both sides of the tuner's threshold


def values(rank, count, product, device):
    index = torch.arange(count, device=device)
    return (index + rank) % (2 if product else 5) + (1 if product else 0)


def expected(size, count, operator, device):
    product = operator == dist.ReduceOp.PRODUCT
    every = torch.stack([values(rank, count, product, device) for rank in range(size)])
    if operator == dist.ReduceOp.SUM:
        return every.sum(0)
    if product:
        return every.prod(0)
    return every.amin(0) if operator == dist.ReduceOp.MIN else every.amax(0)


def check_all_reduce(rank, size, device, types, group=None):
    wrong = calls = 0
    for kind in types:
        for operator in OPERATORS:
            product = operator == dist.ReduceOp.PRODUCT
            work = []
            for count in COUNTS:  # all in flight at once
                tensor = values(rank, count, product, device).to(kind)
                pending = dist.all_reduce(tensor, operator, group=group, async_op=True)
                work.append((pending, tensor, count))
            for pending, tensor, count in work:
                pending.wait()
                wanted = expected(size, count, operator, device).to(kind)
                wrong += int((tensor != wanted).sum())
                calls += 1
    return wrong, calls


def check_others(rank, size, device):
    count, wrong = 100_000, 0
    mine = torch.full((count,), float(rank), device=device)
    gathered = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(gathered, mine)
    wrong += sum(int((part != r).sum()) for r, part in enumerate(gathered))
    root = mine.clone()
    dist.broadcast(root, 0)
    wrong += int((root != 0).sum())
    reduced = mine.clone()
    dist.reduce(reduced, 0)
    wrong += int((reduced != size * (size - 1) / 2).sum()) if rank == 0 else 0
    received = torch.empty_like(mine)
    pending = [dist.P2POp(dist.isend, mine, (rank + 1) % size),
               dist.P2POp(dist.irecv, received, (rank - 1) % size)]
    for request in dist.batch_isend_irecv(pending):
        request.wait()
    wrong += int((received != (rank - 1) % size).sum())
    return wrong, 4


def lose_rank_1(rank, device, how):
    tensor = torch.ones(4 << 20, device=device)
    for step in range(10_000):
        if rank == 1 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        float(tensor[0])  # waits, so that an error shows here
    raise SystemExit("nobody noticed the loss of rank 1")


def check_cycles(rank, size, device, cycles):
    """Communicators come and go: right results, and as many descriptors at the end as early on."""
    early = 0
    for cycle in range(cycles):
        group = dist.new_group(list(range(size)))
        tensor = values(rank, 100_000, False, device)
        dist.all_reduce(tensor, group=group)
        wrong = int((tensor != expected(size, 100_000, dist.ReduceOp.SUM, device)).sum())
        dist.destroy_process_group(group)
        dist.barrier()
        descriptors = len(os.listdir("/proc/self/fd"))
        early = early or descriptors if cycle >= 4 else 0
        if wrong:
            raise SystemExit(f"rank {rank}: cycle {cycle}: {wrong} wrong")
    print(f"rank {rank}: {cycles} communicators, descriptors {early} to {descriptors}", flush=True)
    raise SystemExit(descriptors > early)


def check_relaxed(rank, size, device, steps):
    """Sums over the ranks of what they got and of what they gave agree, element by element."""
    counts = [1 << 20, (1 << 19) + 1, 1 << 18]
    moved = [[torch.zeros(count, device=device) for _ in range(size)] for count in counts]
    low, high = ([[y.clone() for y in of_bucket] for of_bucket in moved] for _ in range(2))
    relaxed = wrong = 0
    for step in range(steps):
        given, got = [], []
        for bucket, count in enumerate(counts):
            every = [torch.randn(count, generator=torch.Generator().manual_seed(step * 1009 + bucket * 101 + r))
                     for r in range(size)]
            given.append([part.to(device) for part in every])
            got.append(given[-1][rank].clone())
        for work in [dist.all_reduce(tensor, async_op=True) for tensor in got]:
            work.wait()
        flag = torch.full((1,), rank + step, dtype=torch.int64, device=device)
        dist.all_reduce(flag)
        wrong += int(flag.item() != size * step + size * (size - 1) // 2)
        for bucket, count in enumerate(counts):
            gathered = [torch.empty_like(got[bucket]) for _ in range(size)]
            dist.all_gather(gathered, got[bucket])
            is_exact = all(torch.equal(part, gathered[0]) for part in gathered)
            relaxed += not is_exact
            outputs = sum(part.double() for part in gathered)
            inputs = sum(part.double() for part in given[bucket])
            # What nodes keep begins anew with every step over all of them, and which those are is not told: it is
            # at most what a node has moved since it was farthest.
            scale = sum(part.abs().double() + torch.maximum(most - y, y - least).double() for part, y, least, most
                        in zip(given[bucket], moved[bucket], low[bucket], high[bucket]))
            # shadow_sync brings others in later: there only what is exact can be checked step by step.
            if is_exact or os.environ.get("RIFFLE_SYNC") != "shadow_sync":
                wrong += int(((outputs - size * inputs).abs() > size * 2.0**-22 * scale).sum())
            for y, part, least, most in zip(moved[bucket], gathered, low[bucket], high[bucket]):
                y += part / size
                torch.minimum(least, y, out=least)
                torch.maximum(most, y, out=most)
    print(f"rank {rank}: {steps * len(counts)} large all-reduces, {relaxed} relaxed, {wrong} wrong", flush=True)
    dist.destroy_process_group()  # in the middle of a mode
    raise SystemExit(wrong != 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lose", choices=["kill", "stop"], help="what befalls rank 1 in the middle")
    parser.add_argument("--relaxed", type=int, default=0, help="steps of a job with RIFFLE_SYNC")
    parser.add_argument("--cycles", type=int, default=0, help="communicators to create and destroy")
    options = parser.parse_args()
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    if options.lose:
        lose_rank_1(rank, device, options.lose)
    if options.relaxed:
        check_relaxed(rank, size, device, options.relaxed)
    if options.cycles:
        check_cycles(rank, size, device, options.cycles)
    # gloo on the CPU, used without a GPU only, has no bfloat16 in older releases.
    types = TYPES if gpu else [kind for kind in TYPES if kind != torch.bfloat16]
    # A second communicator of all ranks, working after and beside the first.
    results = [check_all_reduce(rank, size, device, types)]
    child = os.fork()  # as data loaders do; it ends while the parent works
    if child == 0:
        time.sleep(0.2)
        os._exit(0)
    results += [check_all_reduce(rank, size, device, types, dist.new_group(list(range(size)))),
                check_others(rank, size, device)]
    wrong, calls = (sum(column) for column in zip(*results))
    print(f"rank {rank}: {calls} collectives, {wrong} wrong", flush=True)
    time.sleep(0.5 * rank)  # whoever closes early is no lost peer
    dist.destroy_process_group()
    os.waitpid(child, 0)
    raise SystemExit(wrong != 0)


main()
