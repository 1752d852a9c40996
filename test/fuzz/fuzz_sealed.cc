// What an encrypted stream reads, and the messages of its handshake, from a peer that may send
// anything: nothing opens but what was sealed, in its turn, and every refusal has a reason.
//
// An input is a list of bytes that say what to do next with a recorded stream: pass the record that
// is due, or a change of it.
#include <algorithm>
#include <cstring>

#include "plugin/transport/crypto/record_cipher.h"
#include "plugin/transport/handshake/link_keys.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

using Record = std::vector<std::byte>;

const Secret kSecret = {1, 2, 3};
const EncryptionOptions kOn = {.is_on = true};

// Kept for all inputs: making keys takes longer than all the rest.
struct Recorded {
  Recorded() : own(kSecret, kOn), challenge(make_challenge(own.offer())) {
    Hello said = {.communicator = 7, .session = 8, .rank = 1};
    pair = add_key(own, &said);
    hello = make_hello(said, own, challenge);
    welcome = answer(own, challenge, hello, *open_hello(hello, own, challenge))->welcome;
    const Locked<StreamKeys> keys = make_locked<StreamKeys>();
    keys->out.start(Cipher::kChaCha20Poly1305, {1}, 3);
    for (std::size_t i = 0; i < 8; ++i) {
      const Record plain(i * 37, static_cast<std::byte>(i));
      records.emplace_back(plain.size() + kTagBytes);
      keys->out.seal(plain, records.back().data());
    }
  }
  Credentials own;
  ChallengeBytes challenge;
  Locked<KeyPair> pair;
  HelloBytes hello;
  WelcomeBytes welcome;
  std::vector<Record> records;
};

const Recorded& recorded() {
  static const Recorded& all = *new Recorded;
  return all;
}

template <class Bytes>
Bytes overlaid(const Bytes& good, std::span<const std::uint8_t> input) {
  Bytes bytes = good;
  for (std::size_t i = 0; i < std::min(input.size(), bytes.size()); ++i) {
    bytes[i] = static_cast<std::uint8_t>(bytes[i] ^ input[i]);
  }
  return bytes;
}

void try_messages(std::span<const std::uint8_t> input) {
  const Recorded& r = recorded();
  const HelloBytes hello = overlaid(r.hello, input);
  const Result<Hello> opened = open_hello(hello, r.own, r.challenge);
  require(opened.is_ok() == (hello == r.hello),
          "a HELLO that was changed opens, or a good one not");
  require(opened.is_ok() || !opened.status().message().empty(), "refused without a reason");
  const WelcomeBytes welcome = overlaid(r.welcome, input);
  const auto keys = open_welcome(r.own, r.challenge, r.hello, r.pair.get(), welcome);
  require(keys.is_ok() == (welcome == r.welcome),
          "a WELCOME that was changed opens, or a good one not");
  require(keys.is_ok() || !keys.status().message().empty(), "refused without a reason");
  const ChallengeBytes challenge = overlaid(r.challenge, input);
  (void)check_challenge(challenge);
  (void)check_offer(challenge, r.own.offer());
}

// Two bytes a step: which record comes, and how it was changed (0: not at all).
void try_records(std::span<const std::uint8_t> input) {
  const Recorded& r = recorded();
  const Locked<StreamKeys> keys = make_locked<StreamKeys>();
  keys->in.start(Cipher::kChaCha20Poly1305, {1}, 3);
  std::size_t due = 0;
  bool is_alive = true;
  for (std::size_t i = 0; i + 1 < input.size() && i < 32 && is_alive; i += 2) {
    const std::size_t which = input[i] % r.records.size();
    Record record = r.records[which];
    if (input[i + 1] != 0) record[input[i] % record.size()] ^= std::byte{input[i + 1]};
    Record plain(record.size() - kTagBytes);
    const bool is_good = which == due && input[i + 1] == 0;
    is_alive = keys->in.open(record, plain.data());
    require(is_alive == is_good, "a record opens that is not due, or one that is due does not");
    if (is_alive) {
      require(std::all_of(plain.begin(), plain.end(),
                          [&](std::byte b) { return b == static_cast<std::byte>(which); }),
              "a record opens to something else");
    }
    ++due;
  }
}

}  // namespace

std::vector<Bytes> seeds() {
  return {{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0}, {0, 0, 0, 0}, {0, 0, 2, 0}, {0, 1}, Bytes(120, 0)};
}

void try_input(std::span<const std::uint8_t> input) {
  try_records(input);
  try_messages(input);
}

}  // namespace riffle::fuzz
