#include "plugin/collective/relaxed/rules/gradient_rules.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "plugin/kernels/float_environment.h"
#include "topology/base/check.h"

// Every rule is a loop over blocks that stay in the first-level cache: widened into float32,
// computed there by plain loops that compilers turn into vectors, and narrowed. float32 needs no
// copies and goes straight through.
namespace riffle::rules {
namespace {

constexpr std::size_t kBlock = 1024;  // elements

// 1 if not finite. Integers, since a sum of floats cannot be reordered into a vector.
inline std::uint32_t not_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) >= 0x7f800000U ? 1U : 0U;
}

const float* floats(const std::byte* p) { return reinterpret_cast<const float*>(p); }
float* floats(std::byte* p) { return reinterpret_cast<float*>(p); }

// body(g, first, count): elements first .. first + count - 1, their input as float32.
template <class Body>
void for_input(const std::byte* g, DataType type, std::size_t count, const Body& body) {
  if (type == DataType::kFloat32) {
    body(floats(g), std::size_t{0}, count);
    return;
  }
  alignas(64) float input[kBlock];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t n = std::min(kBlock, count - first);
    widen(g + first * size_of(type), type, n, input);
    body(input, first, n);
  }
}

// Runs a rule over all elements. A rule has
//   float output(float g, std::size_t i) const         N r of element i, changes nothing
//   void commit<kExact>(float g, float output, std::size_t i) const
// where the output is what the job really gets: kExact if that is what output() returned. `g` may
// be null for rules that do not look at it. Element i of `out` is written after all else of element
// i was read, so `out` may be `g`.
template <class Rule>
void run(const std::byte* g, DataType type, std::size_t count, std::byte* out, const Rule& rule) {
  const DefaultFloatEnvironment environment;
  if (type == DataType::kFloat32) {
    const float* in = floats(g);
    float* to = floats(out);
    if (in == nullptr) {
#pragma GCC ivdep
      for (std::size_t i = 0; i < count; ++i) {
        const float o = rule.output(0, i);
        rule.template commit<true>(0, o, i);
        to[i] = o;
      }
      return;
    }
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const float x = in[i];
      const float o = rule.output(x, i);
      rule.template commit<true>(x, o, i);
      to[i] = o;
    }
    return;
  }
  alignas(64) float input[kBlock] = {};
  alignas(64) float output[kBlock];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t n = std::min(kBlock, count - first);
    if (g != nullptr) widen(g + first * size_of(type), type, n, input);
    std::byte* to = out + first * size_of(type);
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) output[i] = rule.output(input[i], first + i);
    narrow(output, type, n, to);
    widen(to, type, n, output);
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; ++i) {
      rule.template commit<false>(input[i], output[i], first + i);
    }
  }
}

// What a state becomes, unless that is no number.
inline float moved(float before, float after) { return not_finite(after) != 0 ? before : after; }

// r of a step that is drawn towards a centre.
inline float towards(float state, float g, float centre, float pull) {
  return g + pull * (centre - state - g);
}

struct Finish {
  const float* __restrict sum;
  float* __restrict state;
  float members, nodes;
  bool resets;

  float output(float /*g*/, std::size_t i) const { return nodes * (sum[i] / members - state[i]); }
  template <bool kExact>
  void commit(float /*g*/, float o, std::size_t i) const {
    const float m = sum[i] / members;
    const float got = kExact ? m : moved(state[i], state[i] + o / nodes);
    state[i] = moved(state[i], resets ? got - m : got);
  }
};

struct Keep {
  float* __restrict state;
  float nodes;

  float output(float g, std::size_t /*i*/) const { return nodes * g; }
  template <bool kExact>
  void commit(float g, float o, std::size_t i) const {
    state[i] = moved(state[i], state[i] + (kExact ? g : o / nodes));
  }
};

struct PassOn {
  float nodes;

  float output(float g, std::size_t /*i*/) const { return nodes * g; }
  template <bool kExact>
  void commit(float /*g*/, float /*o*/, std::size_t /*i*/) const {}
};

// `mean` is that of the parameters, p; v what the job's momentum has to become.
struct Momentum {
  const float* __restrict sum;  // null: keep
  float* __restrict own;
  float* __restrict state;
  float* __restrict job;
  float members, nodes, mu;
  bool resets;

  float mean(float g, std::size_t i) const {
    return sum != nullptr ? sum[i] / members : state[i] + (mu * own[i] + g);
  }
  float velocity(float g, std::size_t i) const {
    return sum != nullptr ? mean(g, i) - state[i] : mu * own[i] + g;
  }
  float output(float g, std::size_t i) const { return nodes * (velocity(g, i) - mu * job[i]); }
  template <bool kExact>
  void commit(float g, float o, std::size_t i) const {
    const float m = mean(g, i);
    const float v = kExact ? velocity(g, i) : mu * job[i] + o / nodes;
    const float got = kExact ? m : state[i] + v;
    const float after = resets ? got - m : got;
    own[i] = moved(own[i], mu * own[i] + g);
    const bool is_number = (not_finite(v) | not_finite(after)) == 0;
    job[i] = is_number ? v : job[i];
    state[i] = is_number ? after : state[i];
  }
};

struct Alone {
  const float* __restrict missing;
  float* __restrict state;
  float nodes;

  float output(float g, std::size_t i) const { return nodes * (g + missing[i]); }
  template <bool kExact>
  void commit(float g, float o, std::size_t i) const {
    state[i] = moved(state[i], state[i] + (kExact ? g + missing[i] : o / nodes));
  }
};

// As Alone, and what the state moved by of its own is added up: what a round sends later.
struct Gathering {
  const float* __restrict missing;  // null: nothing
  float* __restrict state;
  float* __restrict gathered;
  float nodes;

  float brought(std::size_t i) const { return missing != nullptr ? missing[i] : 0; }
  float output(float g, std::size_t i) const { return nodes * (g + brought(i)); }
  template <bool kExact>
  void commit(float g, float o, std::size_t i) const {
    const float r = kExact ? g + brought(i) : o / nodes;
    const float own = kExact ? g : r - brought(i);
    const float after = state[i] + r, sum = gathered[i] + own;
    const bool is_number = (not_finite(after) | not_finite(sum)) == 0;
    state[i] = is_number ? after : state[i];
    gathered[i] = is_number ? sum : gathered[i];
  }
};

struct Towards {
  const float* __restrict centre;
  float* __restrict state;
  float nodes, pull;

  float part(float g, std::size_t i) const { return towards(state[i], g, centre[i], pull); }
  float output(float g, std::size_t i) const { return nodes * part(g, i); }
  template <bool kExact>
  void commit(float g, float o, std::size_t i) const {
    state[i] = moved(state[i], state[i] + (kExact ? part(g, i) : o / nodes));
  }
};

}  // namespace

namespace {

// z[i] = z_of(g, i) for all elements; false if any is not finite.
template <class Body>
bool fill_z(const std::byte* g, DataType type, std::size_t count, float* z, const Body& z_of) {
  const DefaultFloatEnvironment environment;
  std::uint32_t bad = 0;
  for_input(g, type, count, [&](const float* __restrict in, std::size_t first, std::size_t n) {
    float* __restrict to = z + first;
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float x = z_of(in[i], first + i);
      to[i] = x;
      any |= not_finite(x);
    }
    bad |= any;
  });
  return bad == 0;
}

}  // namespace

bool prepare(const float* state, const std::byte* g, DataType type, std::size_t count, float* z) {
  const float* __restrict y = state;
  return fill_z(g, type, count, z, [=](float x, std::size_t i) { return y[i] + x; });
}

void finish(const float* sum, int members, int nodes, std::size_t count, bool resets, float* state,
            DataType type, std::byte* out) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  run(nullptr, type, count, out,
      Finish{sum, state, static_cast<float>(members), static_cast<float>(nodes), resets});
}

void keep(const std::byte* g, int nodes, std::size_t count, float* state, DataType type,
          std::byte* out) {
  run(g, type, count, out, Keep{state, static_cast<float>(nodes)});
}

void pass_on(const std::byte* g, int nodes, std::size_t count, DataType type, std::byte* out) {
  run(g, type, count, out, PassOn{static_cast<float>(nodes)});
}

void fill_not_finite(std::size_t count, DataType type, std::byte* out) {
  alignas(64) float nothing[kBlock];
  std::fill_n(nothing, kBlock, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t first = 0; first < count; first += kBlock) {
    narrow(nothing, type, std::min(kBlock, count - first), out + first * size_of(type));
  }
}

bool prepare_momentum(const MomentumState& s, const std::byte* g, DataType type, std::size_t count,
                      float mu, float* z) {
  const float* __restrict p = s.state;
  const float* __restrict own = s.own;
  return fill_z(g, type, count, z,
                [=](float x, std::size_t i) { return p[i] + (mu * own[i] + x); });
}

void finish_momentum(const float* sum, int members, int nodes, const std::byte* g,
                     std::size_t count, float mu, bool resets, const MomentumState& s,
                     DataType type, std::byte* out) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  run(g, type, count, out,
      Momentum{sum, s.own, s.state, s.job, static_cast<float>(members), static_cast<float>(nodes),
               mu, resets});
}

void keep_momentum(const std::byte* g, int nodes, std::size_t count, float mu,
                   const MomentumState& s, DataType type, std::byte* out) {
  run(g, type, count, out,
      Momentum{nullptr, s.own, s.state, s.job, 1, static_cast<float>(nodes), mu, false});
}

void correction(const float* sum, int members, const float* snapshot, std::size_t count,
                float delta, float* missing) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  const DefaultFloatEnvironment environment;
  const auto divisor = static_cast<float>(members);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    missing[i] = moved(0, delta * (sum[i] / divisor - snapshot[i]));
  }
}

void step_alone(const std::byte* g, const float* missing, int nodes, std::size_t count,
                float* state, DataType type, std::byte* out) {
  const auto n = static_cast<float>(nodes);
  if (missing == nullptr) {
    run(g, type, count, out, Keep{state, n});
  } else {
    run(g, type, count, out, Alone{missing, state, n});
  }
}

bool prepare_missing(const float* state, const float* missing, const std::byte* g, DataType type,
                     std::size_t count, float* z) {
  const float* __restrict y = state;
  const float* __restrict m = missing;
  return fill_z(g, type, count, z, [=](float x, std::size_t i) { return y[i] + x + m[i]; });
}

void step_gathering(const std::byte* g, const float* missing, int nodes, std::size_t count,
                    float* state, float* gathered, DataType type, std::byte* out) {
  run(g, type, count, out, Gathering{missing, state, gathered, static_cast<float>(nodes)});
}

void step_towards(const std::byte* g, const float* centre, float pull, int nodes, std::size_t count,
                  float* state, DataType type, std::byte* out) {
  run(g, type, count, out, Towards{centre, state, static_cast<float>(nodes), pull});
}

bool prepare_towards(const float* state, const float* centre, float pull, const std::byte* g,
                     DataType type, std::size_t count, float* z) {
  const float* __restrict y = state;
  const float* __restrict c = centre;
  return fill_z(g, type, count, z,
                [=](float x, std::size_t i) { return y[i] + towards(y[i], x, c[i], pull); });
}

void move_centre(const float* __restrict sum, int members, std::size_t count, float follow,
                 float* __restrict centre) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  const DefaultFloatEnvironment environment;
  const auto divisor = static_cast<float>(members);
  for (std::size_t i = 0; i < count; ++i) {
    centre[i] = moved(centre[i], centre[i] + follow * (sum[i] / divisor - centre[i]));
  }
}

void move_block(const float* __restrict sum, int members, std::size_t count, float rate,
                float momentum, float* __restrict centre, float* __restrict velocity) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  const DefaultFloatEnvironment environment;
  const auto divisor = static_cast<float>(members);
  for (std::size_t i = 0; i < count; ++i) {
    const float v = momentum * velocity[i] + rate * (sum[i] / divisor - centre[i]);
    const float c = centre[i] + v;
    const bool is_number = not_finite(c) == 0;
    velocity[i] = is_number ? v : velocity[i];
    centre[i] = is_number ? c : centre[i];
  }
}

void shift_centre(const float* __restrict sum, int members, std::size_t count,
                  float* __restrict centre) {
  RIFFLE_CHECK(members >= 1, "no member took part");
  const DefaultFloatEnvironment environment;
  const auto divisor = static_cast<float>(members);
  for (std::size_t i = 0; i < count; ++i) {
    centre[i] = moved(centre[i], centre[i] - sum[i] / divisor);
  }
}

}  // namespace riffle::rules
