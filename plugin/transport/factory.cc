#include "plugin/transport/factory.h"

#include <string>
#include <string_view>

#include "plugin/transport/nccl_net/library_transport.h"
#include "plugin/transport/tcp/tcp_transport.h"

namespace riffle {
namespace {

template <class T>
std::shared_ptr<const Transport> make(const TransportOptions& options) {
  return std::make_shared<const T>(options);
}

struct Line {
  std::string_view name;
  std::shared_ptr<const Transport> (*make)(const TransportOptions&);
};

// Adding a transport: its folder, and a line here.
constexpr Line kTransports[] = {
    {kOverTcp, make<TcpTransport>},
    {kOverLibrary, make<nccl_net::LibraryTransport>},
};

}  // namespace

Result<std::shared_ptr<const Transport>> make_transport(const TransportOptions& options) {
  std::string names;
  for (const Line& line : kTransports) {
    if (line.name == options.name) return line.make(options);
    names.append(names.empty() ? "" : ", ").append(line.name);
  }
  return invalid_argument("no transport is called '" + options.name + "'; accepted: " + names);
}

}  // namespace riffle
