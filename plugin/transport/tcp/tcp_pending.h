// Links that are coming up: all streams of one connector, on either side, and then the link.
// Reactor thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugin/transport/base/transport.h"
#include "plugin/transport/device/nic_traffic.h"
#include "plugin/transport/handshake/acceptor.h"
#include "plugin/transport/handshake/connector.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/tcp/tcp_listener.h"

namespace riffle {

class TcpConnecting final : public PendingLink {
 public:
  TcpConnecting(Reactor& reactor, const TransportOptions& transport, const HandleContent& to,
                const std::vector<NicAddress>& own, const std::string& role,
                Transport::Linked linked);

 private:
  void joined(const Hello& hello, Result<Connection> connection);
  void finish(Result<std::shared_ptr<Link>> result);

  Reactor& reactor_;
  const TransportOptions transport_;
  const std::string peer_;
  const std::shared_ptr<NicTraffic> nics_;
  Transport::Linked linked_;
  StreamSet streams_;
  std::vector<std::unique_ptr<Connector>> connectors_;
};

class TcpAccepting final : public PendingLink, Acceptor::Owner {
 public:
  TcpAccepting(Reactor& reactor, const TransportOptions& transport, TcpListener& listener,
               const std::string& role, Transport::Linked linked);

 private:
  Status admit(const Hello& hello) override { return check_streams(hello); }
  void joined(Connection connection, const Hello& hello) override;
  void failed(const Status& why) override { finish(why); }
  void finish(Result<std::shared_ptr<Link>> result);

  Reactor& reactor_;
  const TransportOptions transport_;
  const std::string role_;
  const std::shared_ptr<NicTraffic> nics_;
  const std::uint64_t communicator_;
  Transport::Linked linked_;
  StreamSet streams_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace riffle
