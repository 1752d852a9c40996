#include "plugin/entry/options.h"

#include "plugin/entry/transport_options.h"

namespace riffle {

Options options_from(const Config& c) {
  Options options;
  options.transport = transport_options(c);
  options.net.piece_bytes = static_cast<std::size_t>(c.piece_bytes);
  return options;
}

const Options& options() {
  static const auto* const all = new Options(options_from(config()));  // outlives every thread
  return *all;
}

}  // namespace riffle
