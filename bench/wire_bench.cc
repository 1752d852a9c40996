// What Riffle adds to a call of NET where RIFFLE_NET names another library: calls of NCCL's newest
// table over a library that does nothing, and the same calls of the library itself.
//
//   riffle_wire_bench PLUGIN LIBRARY   (libnull_net_v12.so: the same version; v9 and v8:
//   translated)
//
// Prints, per call, the medians of 101 rounds of 100,000 calls each, which take turns.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/abi/net.h"
#include "plugin/transport/nccl_net/versions.h"

namespace riffle {
namespace {

constexpr int kRounds = 101;
constexpr int kCalls = 100'000;
constexpr int kGroup = 8;

void log_nothing(int, unsigned long, const char*, int, const char*, ...) {}

void* table_of(const std::string& file, int version) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return ::dlsym(library, ("ncclNetPlugin_v" + std::to_string(version)).c_str());
}

// The arguments of all calls; the null library looks at none of them.
struct Arguments {
  void *comm = this, *data = this, *request = nullptr;
  std::array<void*, kGroup> pointers{};
  std::array<std::size_t, kGroup> sizes{};
  std::array<int, kGroup> small{}, tags{};
  int done = 0;
};

template <class Table>
void send(const Table& t, Arguments& a) {
  if constexpr (nccl_net::kVersion<Table> >= 10) {
    (void)t.isend(a.comm, a.data, 64, 1, nullptr, nullptr, &a.request);
  } else {
    (void)t.isend(a.comm, a.data, 64, 1, nullptr, &a.request);
  }
}

template <class Table>
void receive(const Table& t, Arguments& a, int n) {
  void** const p = a.pointers.data();
  if constexpr (nccl_net::kVersion<Table> >= 10) {
    (void)t.irecv(a.comm, n, p, a.sizes.data(), a.tags.data(), p, p, &a.request);
  } else if constexpr (nccl_net::kVersion<Table> == 9) {
    (void)t.irecv(a.comm, n, p, a.sizes.data(), a.tags.data(), p, &a.request);
  } else {
    (void)t.irecv(a.comm, n, p, a.small.data(), a.tags.data(), p, &a.request);
  }
}

template <class Call>
double ns_per_call(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / kCalls;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kRounds / 2);
  return values[kRounds / 2];
}

// The most that a call costs more.
template <class Ours, class Theirs>
double compare(const char* name, Ours&& ours, Theirs&& theirs) {
  std::vector<double> through, alone;
  for (int round = 0; round < kRounds; ++round) {
    through.push_back(ns_per_call(ours));
    alone.push_back(ns_per_call(theirs));
  }
  const double a = median(through), b = median(alone);
  std::printf("%-24s %6.2f ns through Riffle, %6.2f ns alone, added %6.2f ns\n", name, a, b, a - b);
  return a - b;
}

template <class Theirs>
void run(const abi::NetV12& ours, const Theirs& theirs) {
  Arguments a;
  double most = 0;
  const auto add = [&](double added) { most = std::max(most, added); };
  add(compare(
      "test", [&] { (void)ours.test(a.comm, &a.done, nullptr); },
      [&] { (void)theirs.test(a.comm, &a.done, nullptr); }));
  add(compare(
      "isend", [&] { send(ours, a); }, [&] { send(theirs, a); }));
  add(compare(
      "irecv of one", [&] { receive(ours, a, 1); }, [&] { receive(theirs, a, 1); }));
  add(compare(
      "irecv of eight", [&] { receive(ours, a, kGroup); }, [&] { receive(theirs, a, kGroup); }));
  std::printf("most added: %.2f ns\n", most);
}

int main_of(const std::string& plugin, const std::string& library) {
  ::setenv("RIFFLE_NET", library.c_str(), 1);
  const auto* const ours = static_cast<const abi::NetV12*>(table_of(plugin, 12));
  void* context = nullptr;
  abi::NetCommConfig config{-1};
  if (ours == nullptr || ours->init(&context, 1, &config, log_nothing, nullptr) != 0) {
    throw std::runtime_error("NET does not start");
  }
  if (const void* t = table_of(library, 12)) run(*ours, *static_cast<const abi::NetV12*>(t));
  if (const void* t = table_of(library, 9)) run(*ours, *static_cast<const abi::NetV9*>(t));
  if (const void* t = table_of(library, 8)) run(*ours, *static_cast<const abi::NetV8*>(t));
  return ours->finalize(context);
}

}  // namespace
}  // namespace riffle

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s PLUGIN LIBRARY\n", arguments[0]);
    return 2;
  }
  try {
    return riffle::main_of(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
