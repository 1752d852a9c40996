#include "plugin/collective/base/shadow_settings.h"

#include <charconv>
#include <cstdio>
#include <system_error>

namespace riffle {
namespace {

constexpr ShadowVariant kVariants[] = {ShadowVariant::kDelta, ShadowVariant::kInterpolation,
                                       ShadowVariant::kBmuf, ShadowVariant::kEasgd,
                                       ShadowVariant::kFir};

// A number in [least, most], the ends themselves where they are said to be in.
struct Range {
  double least, most;
  bool with_least, with_most;
  const char* words;
  bool holds(double x) const {
    return (with_least ? x >= least : x > least) && (with_most ? x <= most : x < most);
  }
};
constexpr Range kPull{0, 1, false, false, "numbers above 0 and below 1"};
constexpr Range kFollow{0, 1, false, true, "numbers above 0 and up to 1"};
constexpr Range kRate{0, 2, false, true, "numbers above 0 and up to 2"};
constexpr Range kMomentum{0, 1, true, false,
                          "numbers from 0 to below 1, or nothing for 1 - 1 / nodes"};

void take(const char* name, const std::string& text, const Range& range, double* value,
          std::string* wrong) {
  double x = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, x);
  if (read.ec == std::errc() && read.ptr == end && range.holds(x)) {
    *value = x;
  } else if (wrong->empty()) {
    *wrong = std::string(name) + "=" + text + ": accepted are " + range.words;
  }
}

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return text;
}

}  // namespace

const char* name_of(ShadowVariant variant) {
  switch (variant) {
    case ShadowVariant::kDelta:
      return "delta";
    case ShadowVariant::kInterpolation:
      return "interpolation";
    case ShadowVariant::kBmuf:
      return "bmuf";
    case ShadowVariant::kEasgd:
      return "easgd";
    case ShadowVariant::kFir:
      return "fir";
  }
  return "?";
}

std::optional<ShadowVariant> shadow_variant_of(const std::string& name) {
  for (const ShadowVariant variant : kVariants) {
    if (name == name_of(variant)) return variant;
  }
  return std::nullopt;
}

bool is_over_all(ShadowVariant variant) {
  return variant == ShadowVariant::kBmuf || variant == ShadowVariant::kEasgd ||
         variant == ShadowVariant::kFir;
}

bool has_pull(ShadowVariant variant) {
  return variant == ShadowVariant::kInterpolation || variant == ShadowVariant::kBmuf ||
         variant == ShadowVariant::kEasgd;
}

// Steady state: per round the centre moves by V = (rate / (1 - momentum)) D, D being how far the
// mean of the snapshots is from it, and the mean by G + pull (centre - mean) = V, where the mean
// has gone `busy` G beyond its snapshot and the centre V beyond where it was.
double shadow_speed(const ShadowSettings& s, int nodes, double busy) {
  if (!has_pull(s.variant)) return 1;
  double lag = 1;  // D / V
  if (s.variant == ShadowVariant::kEasgd) lag = 1 / s.follow;
  if (s.variant == ShadowVariant::kBmuf) lag = (1 - s.momentum_among(nodes)) / s.block_rate;
  return (1 - s.pull * busy) / (1 - s.pull + s.pull * lag);
}

std::string describe(const ShadowSettings& s, int nodes) {
  std::string text = name_of(s.variant);
  if (!has_pull(s.variant)) return text;
  text += " (pull " + short_number(s.pull);
  if (s.variant == ShadowVariant::kEasgd) text += ", follow " + short_number(s.follow);
  if (s.variant == ShadowVariant::kBmuf) {
    text += ", block momentum " + short_number(s.momentum_among(nodes)) + ", block rate " +
            short_number(s.block_rate);
  }
  return text + ")";
}

void put_into(const ShadowSettings& s, ScheduleOptions* options) {
  options->all_nodes = is_over_all(s.variant);
  if (has_pull(s.variant)) {
    options->delta = s.pull;
    options->kept = 1 - s.pull;
  }
}

ShadowSettings shadow_settings(const ShadowKnobs& knobs, std::string* wrong) {
  ShadowSettings s;
  s.variant = shadow_variant_of(knobs.rule).value_or(ShadowVariant::kDelta);
  if (has_pull(s.variant)) take("RIFFLE_SHADOW_PULL", knobs.pull, kPull, &s.pull, wrong);
  if (s.variant == ShadowVariant::kEasgd) {
    take("RIFFLE_EASGD_FOLLOW", knobs.follow, kFollow, &s.follow, wrong);
  }
  if (s.variant == ShadowVariant::kBmuf) {
    take("RIFFLE_BLOCK_RATE", knobs.block_rate, kRate, &s.block_rate, wrong);
    if (!knobs.block_momentum.empty()) {
      take("RIFFLE_BLOCK_MOMENTUM", knobs.block_momentum, kMomentum, &s.block_momentum, wrong);
    }
  }
  return s;
}

}  // namespace riffle
