"""What the relaxed modes compute, as plain formulas over all workers at once: an independent model
of the plugin's modes, to be compared with it. Nothing here is the plugin's own code.

A rule turns the gradients g of one step (runs x workers x elements) into what each worker's optimizer
is given, r, in the same units: exact mode gives everybody the mean over the workers. Steps count from
0 at the first call."""

import torch


class Pattern:
    """Who averages with whom: step t of the period gives, for every lane, a partition of the workers.
    Element e of a call belongs to lane e // lane_elements % lanes. Workers in no group keep their
    value."""

    def __init__(self, workers, steps, lane_elements=1024):
        self.workers, self.steps, self.lane_elements = workers, steps, lane_elements
        self._matrices = [[self._matrix(groups) for groups in lanes] for lanes in steps]

    def _matrix(self, groups):
        matrix = torch.eye(self.workers, dtype=torch.float64)
        members = [i for group in groups for i in group]
        if len(set(members)) != len(members) or not set(members) <= set(range(self.workers)):
            raise ValueError(f"groups {groups}: each of the {self.workers} workers at most once")
        for group in groups:
            for i in group:
                matrix[i] = 0
                matrix[i, group] = 1 / len(group)
        return matrix

    def matrix(self, step, lane=0):
        return self._matrices[step % len(self.steps)][lane]

    def lanes(self):
        return len(self.steps[0])

    def average(self, z, step):
        if self.lanes() == 1:
            return mix(self.matrix(step), z)
        out, elements = torch.empty_like(z), z.shape[-1]
        lane_of = torch.arange(elements) // self.lane_elements % self.lanes()
        for lane in range(self.lanes()):
            mine = lane_of == lane
            out[..., mine] = mix(self.matrix(step, lane), z[..., mine])
        return out

    def contraction(self):
        """Of the variance over one period, the worst lane: below 1 or the workers drift apart."""
        mean = torch.full((self.workers, self.workers), 1 / self.workers, dtype=torch.float64)
        worst = 0.0
        for lane in range(self.lanes()):
            product = torch.eye(self.workers, dtype=torch.float64)
            for step in range(len(self.steps)):
                product = self.matrix(step, lane) @ product
            worst = max(worst, float(torch.linalg.matrix_norm(product - mean, 2)) ** 2)
        return worst


def mix(matrix, z):
    return torch.einsum("ij,...jn->...in", matrix.to(z.dtype), z)


def grid(*sizes):
    """One axis of the grid per step: after all axes everybody has met everybody, indirectly."""
    workers, steps, stride = 1, [], 1
    for size in sizes:
        workers *= size
    for size in sizes:
        groups = {}
        for i in range(workers):
            groups.setdefault((i // (stride * size), i % stride), []).append(i)
        steps.append([list(groups.values())])
        stride *= size
    return Pattern(workers, steps)


def rotating_cross_group(racks, per_rack):
    """DS-Sync's pattern for narrow uplinks: in turn one worker of each rack meets those of the other
    racks, while the rest of each rack stays among itself."""
    steps = []
    for slot in range(per_rack):
        cross = [rack * per_rack + slot for rack in range(racks)]
        rest = [[rack * per_rack + s for s in range(per_rack) if s != slot]
                for rack in range(racks)]
        steps.append([[cross, *rest]])
    return Pattern(racks * per_rack, steps)


class Exact:
    name = "exact"

    def step(self, g):
        return g.mean(1, keepdim=True).expand_as(g)


class Local:
    """Nobody meets anybody: what the comparison must be able to tell from exact mode."""
    name = "local"

    def step(self, g):
        return g


class Stateless:
    """Group means of the gradients alone. Drifts like a random walk; a second counter-example."""
    name = "stateless"

    def __init__(self, pattern):
        self._pattern, self._t = pattern, 0

    def step(self, g):
        self._t += 1
        return self._pattern.average(g, self._t - 1)


class Relaxed:
    """Exact for `warmup` steps; then the mode's own; the last of every `full_every` steps (0: none)
    averages the whole state over all workers."""

    def __init__(self, warmup=0, full_every=0):
        self._warmup, self._full_every, self._t = warmup, full_every, 0

    def step(self, g):
        t = self._t - self._warmup
        self._t += 1
        if t < 0:
            return g.mean(1, keepdim=True).expand_as(g)
        if t == 0:
            self.begin(g)
        full = self._full_every > 0 and t % self._full_every == self._full_every - 1
        return self.relaxed(g, t, full)


class GroupState(Relaxed):
    """ds_sync and moshpit: y is the running sum of what a worker was given; groups average y + g."""

    def __init__(self, name, pattern, **settings):
        super().__init__(**settings)
        self.name, self._pattern = name, pattern

    def begin(self, g):
        self._y = torch.zeros_like(g)

    def relaxed(self, g, t, full):
        z = self._y + g
        mean = z.mean(1, keepdim=True).expand_as(z) if full else self._pattern.average(z, t)
        r, self._y = mean - self._y, mean.clone()
        return r


class GroupStateMomentum(Relaxed):
    """ds_sync where the optimizer's momentum is known: what local momentum followed by averaging of
    the parameters would do, exactly."""

    def __init__(self, name, pattern, momentum, **settings):
        super().__init__(**settings)
        self.name, self._pattern, self._momentum = name, pattern, momentum
        self._m = None

    def step(self, g):  # momentum builds up from the first step on, exact ones included
        mean = g.mean(1, keepdim=True).expand_as(g)
        if self._t < self._warmup:
            self._m = mean.clone() if self._m is None else self._momentum * self._m + mean
        return super().step(g)

    def begin(self, g):
        if self._m is None:
            self._m = torch.zeros_like(g)
        # The optimizer's own buffer holds m now; v counts from here, so its last change was m.
        self._v, self._v_before = torch.zeros_like(g), -self._m

    def relaxed(self, g, t, full):
        self._m = self._momentum * self._m + g
        z = self._v + self._m
        v = z.mean(1, keepdim=True).expand_as(z).clone() if full else self._pattern.average(z, t)
        r = v - self._v - self._momentum * (self._v - self._v_before)
        self._v_before, self._v = self._v, v
        return r


class ShadowAverage(Relaxed):
    """shadow_sync, MA: every `gap` steps a round begins in the background, `takes` steps later (`gap`,
    if nothing is said: back to back) its result is there. With it the worker is given its own
    gradient and a correction: by the mean-preserving delta rule, part * (mean of the snapshots - its
    own snapshot); by the published interpolation, part * (mean - what it has now). The mean is that of
    all workers, or of the groups of `pattern`, whose steps are rounds."""

    def __init__(self, name, gap, part, interpolate=False, takes=None, pattern=None, **settings):
        super().__init__(**settings)
        self.name, self._gap, self._part, self._interpolate = name, gap, part, interpolate
        self._pattern = pattern
        self._takes = gap if takes is None else takes
        if not 1 <= self._takes <= gap:
            raise ValueError(f"a round takes {takes} steps: from 1 to {gap}, that is to the next one")

    def begin(self, g):
        self._y, self._snapshot = torch.zeros_like(g), None

    def relaxed(self, g, t, full):
        if full:  # whatever is under way is superseded
            z = self._y + g
            mean = z.mean(1, keepdim=True).expand_as(z)
            r, self._y, self._snapshot = mean - self._y, mean.clone(), None
            return r
        r = g
        if self._snapshot is not None and t == self._ends:
            r, self._snapshot = g + self.correction(g, (t - self._takes) // self._gap), None
        self._y = self._y + r
        if t % self._gap == self._gap - 1:
            self._snapshot, self._ends = self._y.clone(), t + self._takes
        return r

    def correction(self, g, round_):
        mean = (self._pattern.average(self._snapshot, round_) if self._pattern else
                self._snapshot.mean(1, keepdim=True))
        own = self._y + g if self._interpolate else self._snapshot
        return self._part * (mean - own)


class ShadowCentre(Relaxed):
    """shadow_sync, EASGD and BMUF: the mean of the snapshots of a round, back to back, moves a centre,
    the same everywhere, and workers are drawn towards it: what they have then is (1 - pull) of it
    and pull of the centre. `velocity` is what the centre goes on by: momentum * velocity + rate *
    (mean - centre). EASGD has no momentum."""

    def __init__(self, name, gap, pull, rate, momentum=0.0, **settings):
        super().__init__(**settings)
        self.name, self._gap, self._pull = name, gap, pull
        self._rate, self._momentum = rate, momentum

    def begin(self, g):
        self._y, self._snapshot = torch.zeros_like(g), None
        self._centre, self._velocity = torch.zeros_like(g[:, :1]), torch.zeros_like(g[:, :1])

    def relaxed(self, g, t, full):
        r, ends = g, full or t % self._gap == self._gap - 1
        if ends and self._snapshot is not None:
            away = self._snapshot.mean(1, keepdim=True) - self._centre
            self._velocity = self._momentum * self._velocity + self._rate * away
            self._centre, self._snapshot = self._centre + self._velocity, None
            r = g + self._pull * (self._centre - self._y - g)
        if full:  # what they have with the result of the round under way becomes its mean
            r = (self._y + r).mean(1, keepdim=True) - self._y
        self._y = self._y + r
        if ends and not full:
            self._snapshot = self._y.clone()
        return r


class ShadowFir(Relaxed):
    """shadow_sync, FIR per round: the gradients of a round are summed up, their mean arrives one round
    later and replaces the worker's own sum."""

    def __init__(self, name, gap, **settings):
        super().__init__(**settings)
        self.name, self._gap = name, gap

    def begin(self, g):
        self._sum, self._sent = torch.zeros_like(g), torch.zeros_like(g)
        self._y = torch.zeros_like(g)

    def relaxed(self, g, t, full):
        self._sum = self._sum + g
        r = g
        if full:  # everything outstanding is settled at once
            rest = self._sum + self._sent
            r = g + rest.mean(1, keepdim=True) - rest
            self._sum, self._sent = torch.zeros_like(g), torch.zeros_like(g)
        elif t % self._gap == self._gap - 1:
            r = g + self._sent.mean(1, keepdim=True) - self._sent
            self._sent, self._sum = self._sum, torch.zeros_like(g)
        return r


def deviation(x):
    """Mean square distance of the workers from their mean, per element: one number per run, 0 only
    for equal workers."""
    x = x.double()
    return ((x - x.mean(1, keepdim=True)) ** 2).mean((1, 2))
