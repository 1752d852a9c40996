// The update rules of the relaxed modes, as pure functions over one call's elements
// (docs/policies.md has the mathematics).
//
// Everywhere: `g` is the job's input and `out` its output, in the job's type; NCCL asked for a sum,
// so the output is N times the mean-like value r that the optimizer should use. `state` holds y,
// the sum of all r that the job got so far, in float32 (what the parameters moved by, in units of
// gradients). `out` may be `g`; nothing else may overlap. Where the type is narrower than float32,
// the state follows the rounded output, which is what the job's parameters follow: rounding is then
// averaged away like any other difference, instead of adding up unseen. An output too large for the
// type leaves the state of that element as it was.
//
// Sums of `members` contributions arrive in float32. Any thread, any floating-point mode of it;
// nothing is allocated. Preconditions: supports(type) (convert.h), members >= 1.
#pragma once

#include <cstddef>

#include "plugin/kernels/convert.h"

namespace riffle::rules {

// ---- The y-state (ds_sync, moshpit): parameter averaging under plain SGD, exactly.

// z = state + g, what goes into the group's sum. False if any z is not finite.
bool prepare(const float* state, const std::byte* g, DataType type, std::size_t count, float* z);

// m = sum / members; r = m - state; state <- m. `resets`: the sum was over all nodes, so m
// is taken off the state of all, which changes nothing but keeps it small.
void finish(const float* sum, int members, int nodes, std::size_t count, bool resets, float* state,
            DataType type, std::byte* out);

// The contribution was not averaged: r = g; state <- state + g where that is finite.
void keep(const std::byte* g, int nodes, std::size_t count, float* state, DataType type,
          std::byte* out);

// As keep(), of a call that has no state here: r = g.
void pass_on(const std::byte* g, int nodes, std::size_t count, DataType type, std::byte* out);

// No input may be used: not a number everywhere; states stay.
void fill_not_finite(std::size_t count, DataType type, std::byte* out);

// ---- DS-Sync's own rule under momentum `mu` (heavy ball, known to us): every node has a momentum
// of its own, and what is averaged are parameters.

// Of one call's elements: `own` is the node's momentum in DS-Sync, `state` as above, `job` the
// momentum that the job's optimizer holds. All 0 at the beginning.
struct MomentumState {
  float* own;
  float* state;
  float* job;
};
// z = state + mu own + g
bool prepare_momentum(const MomentumState& s, const std::byte* g, DataType type, std::size_t count,
                      float mu, float* z);
// own <- mu own + g; v = sum / members - state; r = v - mu job; job <- v.
void finish_momentum(const float* sum, int members, int nodes, const std::byte* g,
                     std::size_t count, float mu, bool resets, const MomentumState& s,
                     DataType type, std::byte* out);
// The same with what the node itself contributed in place of the mean.
void keep_momentum(const std::byte* g, int nodes, std::size_t count, float mu,
                   const MomentumState& s, DataType type, std::byte* out);

// ---- In the background (shadow_sync; shadow_rule.h puts these together): steps take the local
// value at once, a round brings others in.

// What a round over a snapshot says is missing: delta (sum / members - snapshot), 0 where that is
// not finite. The delta rule takes snapshots of the state; per-round FIR sends what the state moved
// by of its own. `missing` may be `snapshot`.
void correction(const float* sum, int members, const float* snapshot, std::size_t count,
                float delta, float* missing);
// r = g + missing (null: r = g); state <- state + r.
void step_alone(const std::byte* g, const float* missing, int nodes, std::size_t count,
                float* state, DataType type, std::byte* out);
// As prepare(): z = state + g + missing.
bool prepare_missing(const float* state, const float* missing, const std::byte* g, DataType type,
                     std::size_t count, float* z);
// As step_alone(), and gathered <- gathered + r - missing: what FIR sends next.
void step_gathering(const std::byte* g, const float* missing, int nodes, std::size_t count,
                    float* state, float* gathered, DataType type, std::byte* out);
// r = g + pull (centre - state - g): interpolation, with the mean of the snapshots as the centre
// (ShadowMA as published), or a centre that all nodes keep alike:
void step_towards(const std::byte* g, const float* centre, float pull, int nodes, std::size_t count,
                  float* state, DataType type, std::byte* out);
// As prepare(): z = state + r, with that r.
bool prepare_towards(const float* state, const float* centre, float pull, const std::byte* g,
                     DataType type, std::size_t count, float* z);
// The next two leave an element alone where it would be no finite number any more.
// EASGD-like: centre <- centre + follow (sum / members - centre); follow 1: centre <- the mean.
void move_centre(const float* sum, int members, std::size_t count, float follow, float* centre);
// BMUF: velocity <- momentum velocity + rate (sum / members - centre); centre <- centre + velocity
void move_block(const float* sum, int members, std::size_t count, float rate, float momentum,
                float* centre, float* velocity);
// A step over all nodes took sum / members off every state: centre <- centre - sum / members.
void shift_centre(const float* sum, int members, std::size_t count, float* centre);

}  // namespace riffle::rules
