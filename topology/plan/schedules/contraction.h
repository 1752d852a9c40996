// Contraction: does a schedule mix, how fast, and how far do nodes stay apart? Numerically, on the
// partitions themselves, lane by lane.
//
// A step replaces the values of a group's members by their mean: W_t, symmetric, idempotent, doubly
// stochastic. One step of relaxed averaging is y <- W_t (y + g). With noise of variance sigma^2 in
// every g, independent over nodes and steps, the nodes' deviation from their mean settles at a
// multiple of sigma^2; what that multiple is decides whether training may use the schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/plan/schedules/schedules.h"

namespace riffle {

// How a round uses the mean of the group (docs/policies.md).
struct MixingRule {
  double delta = 1;  // y <- y + delta (mean - y)
  int steps = 1;     // gradients per round
  // True: the round's gradients are part of what is averaged (ds_sync, moshpit). False: they arrive
  // after the snapshot that is averaged (shadow_sync).
  bool current = true;
  // Part of the gradients that arrived after the snapshot which the end of the round leaves.
  double kept = 1;
};

struct Mixing {
  bool connected = false;  // every lane: the groups of a period join all nodes
  double contraction = 1;  // of the variance per step in the long run, of the worst lane
  double norm = 1;  // squared, of the period's product without the mean; worst lane and phase 0
  double deviation = 0;  // see ScheduleCandidate; beyond 30 per step of a round a lower bound
  double worst_deviation = 0;
  bool exact = false;  // of up to kExactNodes nodes: not sampled
};
inline constexpr int kExactNodes = 64;

// The least margin by which the variance must shrink over a period.
inline constexpr double kLeastContraction = 1e-3;

// Precondition: a valid table.
Mixing mixing_of(const ScheduleTable& table, const MixingRule& rule = {});

// ok iff every lane joins all nodes and shrinks differences; the message names the lane.
Status verify_contraction(const ScheduleTable& table);

// The formulas for what is known in closed form, in units of sigma^2 (docs/policies.md).
double grid_deviation(const std::vector<int>& dimensions);  // y-state, full grid
double random_groups_deviation(int nodes, int groups);      // y-state, uniformly random groups
double delta_deviation(int nodes, double delta, int round_steps);  // over all nodes
double fir_deviation(int nodes, int delay_steps);
// The largest delta at which `overlap` further rounds may be under way: 2 sin(pi / (2 (2p + 1))).
double delta_limit(int overlap);

}  // namespace riffle
