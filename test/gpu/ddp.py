"""Stock PyTorch data-parallel training: nothing in it knows of the plugin.

Prints the mean loss of every step, and at the end how far the ranks' weights are apart. With --lose
one rank is killed or stopped in the middle, and the others are to train on to the end
(RIFFLE_ON_LOSS=continue): from then on they use nothing but all-reduces. Started once per rank by
ddp.sh; without a GPU it trains over gloo.
"""
import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=512, help="hidden layers; 1024 has gradients of 4.6 MiB")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--lose", choices=["kill", "stop"], help="what befalls a rank")
parser.add_argument("--victim", type=int, default=1, help="which rank")
parser.add_argument("--lose-at", type=int, default=100, help="in which step")
options = parser.parse_args()

gpu = torch.cuda.is_available()
dist.init_process_group("nccl" if gpu else "gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank % torch.cuda.device_count()) if gpu else torch.device("cpu")
if gpu:
    torch.cuda.set_device(device)
torch.manual_seed(1)  # the same teacher and start on every rank
teacher = nn.Linear(64, 10).to(device)
width = options.width
student = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
# A job that goes on after a loss must not wait for the lost rank: no broadcasts.
model = nn.parallel.DistributedDataParallel(student.to(device), broadcast_buffers=False, bucket_cap_mb=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
data = torch.Generator().manual_seed(100 + rank)  # other samples on every rank
lost = False
for step in range(options.steps):
    x = torch.randn(64, 64, generator=data).to(device)
    if options.lose and step == options.lose_at:
        if rank == options.victim:
            os.kill(os.getpid(), signal.SIGKILL if options.lose == "kill" else signal.SIGSTOP)
        lost = True
    loss = nn.functional.cross_entropy(model(x), teacher(x).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)  # scaled after a loss: dividing by all ranks gives the survivors' mean
    if rank == (1 if lost and options.victim == 0 else 0):
        print(f"step {step} loss {mean.item() / ranks:.6f}", flush=True)

# By all-reduces only: those who are left can do them. (Sums of relaxed modes differ; these do not.)
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
low, high = weights.clone(), weights.clone()
dist.all_reduce(low, dist.ReduceOp.MIN)
dist.all_reduce(high, dist.ReduceOp.MAX)
apart = ((high - low).norm() / weights.norm()).item()
print(f"rank {rank}: weights equal on all ranks: {torch.equal(low, high)}, {apart:.3g} of their norm apart", flush=True)
if lost:
    os._exit(0)  # what a job must do to end with a lost rank: docs/surviving-losses.md
dist.destroy_process_group()
