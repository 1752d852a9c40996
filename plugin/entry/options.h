// Options: what the knobs ask for, in the form that each room takes. Made here, at the border, and
// handed down: nothing below plugin/entry reads config().
#pragma once

#include "plugin/config/config.h"
#include "plugin/net/net_options.h"
#include "plugin/transport/base/options.h"

namespace riffle {

struct Options {
  TransportOptions transport;
  NetOptions net;
};

Options options_from(const Config& config);

// Of this process, made on first use.
const Options& options();

}  // namespace riffle
