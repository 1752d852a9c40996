"""The gradient buckets of one ResNet-50 step, as PyTorch's DistributedDataParallel makes them.

Parameters follow from the architecture (He et al., Deep Residual Learning for Image Recognition,
2015, table 1, with torchvision's order and projection shortcuts)."""

FIRST_BUCKET_BYTES = 1 << 20  # DDP starts with a small one, to have something to send early
BUCKET_BYTES = 25 << 20       # DDP's default bucket_cap_mb


def parameters():
    """Elements of every parameter, in the model's order."""
    sizes = []

    def convolution(inputs, outputs, kernel):
        """With the batch norm behind it (weight, bias)."""
        sizes.extend([inputs * outputs * kernel * kernel, outputs, outputs])

    convolution(3, 64, 7)
    inputs = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            convolution(inputs, width, 1)
            convolution(width, width, 3)
            convolution(width, 4 * width, 1)
            if block == 0:
                convolution(inputs, 4 * width, 1)
            inputs = 4 * width
    return sizes + [2048 * 1000, 1000]


def bucket_bytes():
    """Last parameters first, as their gradients come; a bucket closes when it is full."""
    buckets, size = [], 0
    for elements in reversed(parameters()):
        size += 4 * elements
        if size >= (BUCKET_BYTES if buckets else FIRST_BUCKET_BYTES):
            buckets.append(size)
            size = 0
    return buckets + ([size] if size else [])
