#include "plugin/transport/handshake/stream_set.h"

namespace riffle {

int streams_to_each_of(int peers, int wanted) {
  if (wanted > 0) return wanted;
  return peers <= 2 ? 2 : 1;
}

Status check_streams(const Hello& hello) {
  if (hello.streams < 1 || hello.streams > kMaxStreams || hello.stream >= hello.streams) {
    return remote_error("it names stream " + std::to_string(hello.stream) + " of " +
                        std::to_string(hello.streams));
  }
  return Status::ok();
}

void StreamSet::add(Connection connection, const Hello& hello) {
  if (hello.session != session_ || hello.streams != connections_.size()) clear();
  session_ = hello.session;
  connections_.resize(hello.streams);
  Connection& place = connections_.at(hello.stream);
  if (!place.socket.is_open()) ++count_;
  place = std::move(connection);
}

std::vector<Connection> StreamSet::take() {
  std::vector<Connection> all = std::move(connections_);
  clear();
  return all;
}

void StreamSet::clear() {
  connections_.clear();
  count_ = 0;
}

}  // namespace riffle
