"""What the trainings learn, on data that every Debian machine has: scikit-learn's handwritten digits
(1,797 real 8x8 images) by a small network with or without convolutions or a residual one, and the
next character of real text (the licences that Debian keeps in /usr/share/common-licenses) by a small
transformer or one of 10.7 million parameters.

Everything is float32. Weights at the start and the order of the data follow from the seed alone, so
that two ways of training can be compared in pairs."""

import copy
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDS = 5  # of the digits: every image is tested once, by a model that has not seen it


class Digits:
    """Points are correct answers: whole folds add up to a test on all images."""

    def __init__(self, name, build, rate):
        self.name, self.rate, self._build = name, rate, build
        self.batch = 8  # images per worker and step
        self.steps, self.folds = 450, FOLDS  # 20 epochs on 8 workers
        self.score_name, self.decays = "accuracy", False

    def load(self, seed, fold):
        from sklearn.datasets import load_digits
        from sklearn.model_selection import StratifiedKFold
        digits = load_digits()
        images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
        labels = torch.tensor(digits.target)
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
        rows, held_out = list(folds.split(digits.data, digits.target))[fold]
        return Data(images[rows], labels[rows], images[held_out], labels[held_out])

    def model(self, seed):
        torch.manual_seed(seed)
        return self._build()

    @staticmethod
    def loss(logits, labels):
        return F.cross_entropy(logits, labels)

    @staticmethod
    def score(logits, labels):
        """Part of the answers that are right, over the last but one dimension of the logits."""
        return (logits.argmax(-1) == labels).float().mean(-1)


class Text:
    """The next character; the score is the mean loss on text that was held out, less is better. The
    learning rate falls to 0 along a cosine, as is usual for language models."""

    FILES = ("Apache-2.0", "Artistic", "CC0-1.0", "GFDL-1.3", "GPL-2", "GPL-3", "LGPL-2.1", "MPL-2.0")
    FOLDER = pathlib.Path("/usr/share/common-licenses")
    HELD_OUT = 10  # every tenth block of every file
    BLOCK = 1024   # characters

    def __init__(self, name, rate, batch=4, steps=400, length=32, most_held_out=None, **shape):
        self.name, self.rate = name, rate
        self.batch = batch  # pieces of text per worker and step
        self.steps, self.folds = steps, 1
        self._length, self._shape = length, shape  # characters that the model sees; the model's
        self._most_held_out = most_held_out  # pieces, spread over all; None: all
        self.score_name, self.decays = "validation loss", True
        self._alphabet = None

    def _text(self):
        missing = [file for file in self.FILES if not (self.FOLDER / file).exists()]
        if missing:
            raise FileNotFoundError(f"{self.FOLDER}: {', '.join(missing)} missing; the text comes "
                                    "from Debian's package base-files")
        return [(self.FOLDER / file).read_text(errors="replace") for file in self.FILES]

    def load(self, seed, fold):
        texts = self._text()
        codes = {c: i for i, c in enumerate(sorted(set("".join(texts))))}
        blocks = [torch.tensor([codes[c] for c in text[i:i + self.BLOCK]])
                  for text in texts for i in range(0, len(text), self.BLOCK)]
        piece = self._length + 1

        def pieces(kept, stride):
            found = [b[i:i + piece] for b in kept for i in range(0, len(b) - piece + 1, stride)]
            return torch.stack(found)

        learnt = pieces([b for i, b in enumerate(blocks) if i % self.HELD_OUT], 8)
        held_out = pieces([b for i, b in enumerate(blocks) if i % self.HELD_OUT == 0], piece)
        held_out = held_out[::math.ceil(len(held_out) / (self._most_held_out or len(held_out)))]
        return Data(learnt[:, :-1], learnt[:, 1:], held_out[:, :-1], held_out[:, 1:])

    def model(self, seed):
        characters = len(set("".join(self._text())))
        torch.manual_seed(seed)
        return Transformer(characters, self._length, **self._shape)

    @staticmethod
    def loss(logits, following):
        return F.cross_entropy(logits.flatten(0, -2), following.flatten())

    @staticmethod
    def score(logits, following):
        logs = logits.log_softmax(-1).gather(-1, following[..., None].expand(*logits.shape[:-1], 1))
        return -logs.flatten(-3).mean(-1)


class Data:
    def __init__(self, inputs, targets, held_out, held_out_targets):
        self.inputs, self.targets = inputs, targets
        self.held_out, self.held_out_targets = held_out, held_out_targets

    def batches(self, seed, steps, workers, batch):
        """The rows of every step, workers x batch: shuffled epochs. How many workers share a step
        does not change what the step learns from, only who has it."""
        random = np.random.default_rng([seed, 1])
        order = np.empty(0, dtype=np.int64)
        for _ in range(steps):
            while len(order) < workers * batch:
                order = np.concatenate([order, random.permutation(len(self.inputs))])
            yield torch.from_numpy(order[:workers * batch].reshape(batch, workers).T.copy())
            order = order[workers * batch:]


class Block(nn.Module):
    """Attention to what came before, then two fully connected layers."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm_in, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix_in, self.mix_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.full((length, length), -torch.inf).triu(1))

    def forward(self, x):
        count, length, width = x.shape
        parts = self.mix_in(self.norm_in(x)).reshape(count, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5 + self.mask
        mixed = (weights.softmax(-1) @ value).transpose(1, 2).reshape(count, length, width)
        x = x + self.mix_out(mixed)
        return x + self.narrow(F.relu(self.wide(self.norm_out(x))))


class Transformer(nn.Module):
    def __init__(self, characters, length, width=32, heads=4, blocks=2):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads, length) for _ in range(blocks)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, text):
        return self.out(self.norm(self.blocks(self.characters(text) + self.places)))


# Their gradients are large enough for the plugin's relaxed modes, which leave small sums alone; those
# of the small ones are not.
def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 192), nn.ReLU(), nn.Linear(192, 128), nn.ReLU(),
                         nn.Linear(128, 10))


def mlp_small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(),
                         nn.Linear(32, 10))


def cnn_small():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(256, 10))


def wide():
    """2.1 million parameters: gradients of 8 MiB, for measurements of time."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 1416), nn.ReLU(), nn.Linear(1416, 1416),
                         nn.ReLU(), nn.Linear(1416, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))


class Residual(nn.Module):
    """He et al. 2016, the basic block: two convolutions with batch norm, beside them the input or, where the
    shape changes, one convolution of 1 x 1."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        changes = stride != 1 or inputs != outputs
        self.beside = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                    nn.BatchNorm2d(outputs)) if changes else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.beside(x))


def resnet():
    """Three stages of one block each: 77,754 parameters."""
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def batch_norms(model):
    return [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]


def score_of(task, model, data):
    """Of the model as it is. Batch norm is given the statistics of these weights over all that is learnt
    from, as stochastic weight averaging does (Izmailov et al. 2018): those that a worker gathered on
    the way are of other weights wherever weights or gradients are averaged in groups, and of its own
    share of the data."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for norm in batch_norms(model):
            norm.reset_running_stats()
            norm.momentum = None  # plain means
        if batch_norms(model):
            model.train()(data.inputs)
        return float(task.score(model.eval()(data.held_out), data.held_out_targets))


TASKS = {task.name: task for task in (
    Digits("digits-mlp", mlp, 0.05), Digits("digits-cnn", cnn, 0.05),
    Digits("digits-mlp-small", mlp_small, 0.05), Digits("digits-cnn-small", cnn_small, 0.05),
    Digits("digits-wide", wide, 0.05), Digits("digits-resnet", resnet, 0.05), Text("text", 0.2),
    Text("text-large", 0.1, batch=1, steps=200, length=64, most_held_out=64, width=384, heads=6,
         blocks=6))}
RATES_ADAM = {"digits-mlp": 0.003, "digits-cnn": 0.003, "digits-mlp-small": 0.003,
              "digits-cnn-small": 0.003, "digits-wide": 0.001, "digits-resnet": 0.003, "text": 0.003,
              "text-large": 0.0003}
MOMENTUM = 0.9


def rate_of(optimizer, task, rate=None):
    return rate or (RATES_ADAM[task.name] if optimizer == "adam" else task.rate)


class Optimizer:
    """`sgd` (with momentum) or `adam` with the task's schedule, for one model or for stacked ones
    alike."""

    def __init__(self, name, task, parameters, steps, rate=None):
        if name == "adam":
            self._inner = torch.optim.Adam(parameters, lr=rate_of(name, task, rate))
        elif name == "sgd":
            self._inner = torch.optim.SGD(parameters, lr=rate_of(name, task, rate),
                                          momentum=MOMENTUM)
        else:
            raise ValueError(f'optimizer "{name}": accepted are sgd and adam')
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._inner, lambda t: (1 + math.cos(math.pi * t / steps)) / 2 if task.decays else 1)

    def zero_grad(self):
        self._inner.zero_grad()

    def step(self):
        self._inner.step()
        self._schedule.step()


def train_alone(task, seed, fold, steps, workers, optimizer_name="sgd"):
    """One process with the whole batch of all workers: what they must arrive at in exact mode."""
    data = task.load(seed, fold)
    model = task.model(seed)
    optimizer = Optimizer(optimizer_name, task, model.parameters(), steps)
    for rows in data.batches(seed, steps, workers, task.batch):
        rows = rows.flatten()
        optimizer.zero_grad()
        task.loss(model(data.inputs[rows]), data.targets[rows]).backward()
        optimizer.step()
    return model
