// Options: what the knobs ask for, in the form that each room takes. Made here, at the border, and
// handed down: nothing below plugin/entry reads config().
#pragma once

#include <string>

#include "plugin/collective/options.h"
#include "plugin/config/config.h"
#include "plugin/identity/identity.h"
#include "plugin/tuner/tuner.h"

namespace riffle {

struct Options {
  std::string isa;  // kernels/reduce.h
  identity::Options identity;
  CollectiveOptions collective;
  TunerSettings tuner;
};

Options options_from(const Config& config);

}  // namespace riffle
