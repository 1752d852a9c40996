"""The two models that are trained, in plain PyTorch, and the batches they are trained on.

ResNet-50 as torchvision has it (v1.5: the 3 x 3 convolution strides; 25,557,032 parameters) and GPT-2 as OpenAI
published the small one (124,439,808 parameters, output tied to the embedding). Both also in a tiny size of
the same shape, for machines without a GPU. Images and tokens are drawn from random numbers: what is measured
is the time of a step, not accuracy.
"""
import dataclasses

import torch
from torch import nn
from torch.nn import functional as F


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.inner = nn.Sequential(
            convolution(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            convolution(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            convolution(width, outputs, 1), nn.BatchNorm2d(outputs))
        is_same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if is_same else nn.Sequential(
            convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.inner(x) + self.shortcut(x))


def resnet(depths=(3, 4, 6, 3), width=64, classes=1000):
    layers = [convolution(3, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, depth in enumerate(depths):
        for block in range(depth):
            layers.append(Bottleneck(inputs, width << stage, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def attention(q, k, v):
    """Causal."""
    if hasattr(F, "scaled_dot_product_attention"):  # PyTorch 2.0 and later
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm1(x)).view(shape).permute(2, 0, 3, 1, 4)
        x = x + self.projection(attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm2(x))


class Gpt2(nn.Module):
    def __init__(self, vocabulary=50257, length=1024, width=768, layers=12, heads=12):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def parameters_of(model):
    return sum(p.numel() for p in model.parameters())


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained with; a batch is (inputs, targets) on the processor."""
    make: object
    batch: object       # of a size and a torch.Generator
    optimizer: object   # of parameters

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs.flatten(0, -2).float(), targets.flatten())


def images(size, classes):
    return lambda count, random: (torch.randn(count, 3, size, size, generator=random),
                                  torch.randint(classes, (count,), generator=random))


def text(length, vocabulary):
    def batch(count, random):
        tokens = torch.randint(vocabulary, (count, length + 1), generator=random)
        return tokens[:, :-1], tokens[:, 1:]
    return batch


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1)


TASKS = {"resnet50": Task(resnet, images(224, 1000), sgd),
         "gpt2": Task(Gpt2, text(1024, 50257), adamw)}
TINY = {"resnet50": Task(lambda: resnet((1, 1, 1, 1), 8, 10), images(32, 10), sgd),
        "gpt2": Task(lambda: Gpt2(97, 32, 32, 2, 2), text(32, 97), adamw)}
