// An HTTP server for one page, /metrics, which Prometheus asks for. One thread; a client that
// neither asks nor reads for kPatienceS is cut off.
#pragma once

#include <functional>
#include <string>

#include "topology/base/status.h"

namespace riffle::tools {

inline constexpr int kPatienceS = 10;

// "127.0.0.1:9817", "[::1]:9817": a numeric address and a port, 0 for any that is free. `page`
// makes the page anew for every request; `listening` is told the address in use, once. Returns at
// SIGINT or SIGTERM.
Status serve_metrics(const std::string& address, const std::function<std::string()>& page,
                     const std::function<void(const std::string& address)>& listening);

}  // namespace riffle::tools
