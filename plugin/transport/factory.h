// Makes the transport that carries this process's frames.
#pragma once

#include <memory>

#include "plugin/transport/base/transport.h"

namespace riffle {

// By options.name; an error lists the names that there are.
Result<std::shared_ptr<const Transport>> make_transport(const TransportOptions& options);

}  // namespace riffle
