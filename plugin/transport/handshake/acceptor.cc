#include "plugin/transport/handshake/acceptor.h"

#include <utility>

#include "plugin/transport/base/caught.h"

namespace riffle {

Acceptor::Acceptor(Reactor& reactor, std::vector<Fd> sockets, const HandleContent& content,
                   Owner* owner, const EncryptionOptions& encryption)
    : reactor_(reactor),
      credentials_(content.secret, encryption),
      owner_(owner),
      strangers_(Reactor::for_strangers()) {
  Reactor::WakeHandler* const self = this;
  doors_ = std::make_unique<Doors>(*strangers_, std::move(sockets), content.communicator,
                                   credentials_, reactor_, self);
}

Acceptor::~Acceptor() {
  strangers_->run_and_wait([this] { doors_.reset(); });
  reactor_.forget(this);
}

// One guest at a time: the owner may destroy this.
void Acceptor::on_wake() {
  if (const Status s = doors_->take_failure(); !s) return owner_->failed(s);
  bool are_more = false;
  std::optional<Doors::Guest> guest = doors_->next_guest(&are_more);
  if (are_more) reactor_.wake(this);
  if (guest) welcome(std::move(*guest));
}

Result<Answer> Acceptor::judge(const Doors::Guest& guest) const {
  if (Status s = owner_->admit(guest.hello); !s) return s;
  return answer(credentials_, guest.challenge, guest.said, guest.hello);
}

void Acceptor::welcome(Doors::Guest guest) {
  Result<Answer> says = internal_error("no answer");
  catching([&] { says = judge(guest); }, [&](const Status& why) { says = why; });
  if (!says) {
    return doors_->turned_away(Stranger::kRefused, guest.from, says.status().message());
  }
  const WelcomeBytes& bytes = says->welcome;
  if (::send(guest.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return doors_->turned_away(Stranger::kLeft, guest.from, "it hung up before it was welcomed");
  }
  Connection connection(std::move(guest.socket), std::move(says->keys));
  connection.mark = mark_of(bytes);
  owner_->joined(std::move(connection), guest.hello);
}

}  // namespace riffle
