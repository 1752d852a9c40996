"""Checks torch.distributed's collectives on one rank of many: exact results, one line at the end.

Started once per rank by operations.sh. Untested on a GPU so far; without one it runs on gloo, which
checks this file but not the plugin. Inputs are small integers, so that every type holds the sums.
With --lose it ends rank 1 in the middle, and the others must fail rather than wait for ever.
"""
import argparse
import os
import signal

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lose", action="store_true", help="kill rank 1 in the middle")
    lose = parser.parse_args().lose
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    if lose:
        tensor = torch.ones(4 << 20, device=device)
        for step in range(10_000):
            if rank == 1 and step == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
            float(tensor[0])  # waits, so that an error shows here
        raise SystemExit("nobody noticed the loss of rank 1")
    # gloo on the CPU, used without a GPU only, has no bfloat16 in older releases.
    types = TYPES if gpu else [kind for kind in TYPES if kind != torch.bfloat16]
    # A second communicator of all ranks, working after and beside the first.
    results = [check_all_reduce(rank, size, device, types),
               check_all_reduce(rank, size, device, types, dist.new_group(list(range(size)))),
               check_others(rank, size, device)]
    wrong, calls = (sum(column) for column in zip(*results))
    print(f"rank {rank}: {calls} collectives, {wrong} wrong", flush=True)
    dist.destroy_process_group()
    raise SystemExit(wrong != 0)


main()
