"""Stock PyTorch data-parallel training: nothing in it knows of the plugin.

Prints the mean loss of every step, and at the end whether all ranks hold the same weights. Started
once per rank by ddp.sh. Untested on a GPU so far; without one it trains over gloo.
"""
import torch
import torch.distributed as dist
from torch import nn

gpu = torch.cuda.is_available()
dist.init_process_group("nccl" if gpu else "gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank % torch.cuda.device_count()) if gpu else torch.device("cpu")
torch.manual_seed(1)  # the same teacher and start on every rank
teacher = nn.Linear(64, 10).to(device)
student = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
model = nn.parallel.DistributedDataParallel(student.to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
data = torch.Generator().manual_seed(100 + rank)  # other samples on every rank
for step in range(200):
    x = torch.randn(64, 64, generator=data).to(device)
    loss = nn.functional.cross_entropy(model(x), teacher(x).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(f"step {step} loss {mean.item() / ranks:.6f}", flush=True)
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
every = [torch.empty_like(weights) for _ in range(ranks)]
dist.all_gather(every, weights)
if rank == 0:
    print("weights equal on all ranks:", all(torch.equal(weights, other) for other in every), flush=True)
dist.destroy_process_group()
