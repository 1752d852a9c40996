// Speed of the ciphers on records as an encrypted link seals and opens them, within the L2 cache.
//
//   build/bench/riffle_seal_bench
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "plugin/transport/crypto/record_cipher.h"

namespace riffle {
namespace {

void seal(benchmark::State& state, Cipher cipher) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> plain(size, std::byte{1});
  std::vector<std::byte> sealed(size + kTagBytes);
  const Locked<StreamKeys> keys = make_locked<StreamKeys>();
  keys->out.start(cipher, {1});
  for (auto _ : state) {
    keys->out.seal(plain, sealed.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Under a nonce of the test's: a RecordCipher opens nothing twice.
void open(benchmark::State& state, Cipher cipher) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> plain(size, std::byte{1}), sealed(size + kTagBytes);
  const Locked<Aead> aead = make_locked<Aead>();
  aead->set_key(cipher, {1});
  aead->seal(plain, {}, sealed.data());
  for (auto _ : state) {
    if (!aead->open(sealed, {}, plain.data())) state.SkipWithError("does not open");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

constexpr std::pair<const char*, void (*)(benchmark::State&, Cipher)> kDirections[] = {
    {"seal", seal}, {"open", open}};

const bool kRegistered = [] {
  for (const Cipher cipher : {Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305}) {
    if ((own_ciphers() & set_of(cipher)) == 0) continue;
    for (const auto& [name, function] : kDirections) {
      benchmark::RegisterBenchmark((std::string(name) + "/" + cipher_name(cipher)).c_str(),
                                   function, cipher)
          ->Arg(64)
          ->Arg(1024)
          ->Arg(kRecordBytes);
    }
  }
  return true;
}();

}  // namespace
}  // namespace riffle

BENCHMARK_MAIN();
