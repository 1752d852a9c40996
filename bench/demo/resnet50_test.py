"""PyTorch's own bucketing agrees with ours."""

import torch
import torch.distributed

import resnet50

assert sum(resnet50.parameters()) == 25_557_032 and len(resnet50.parameters()) == 161
tensors = [torch.empty(n, device="meta") for n in reversed(resnet50.parameters())]
assigned = torch.distributed._compute_bucket_assignment_by_size(
    tensors, [resnet50.FIRST_BUCKET_BYTES, resnet50.BUCKET_BYTES])[0]
theirs = [sum(4 * tensors[i].numel() for i in bucket) for bucket in assigned]
assert resnet50.bucket_bytes() == theirs, (resnet50.bucket_bytes(), theirs)
print("buckets of", theirs, "bytes")
