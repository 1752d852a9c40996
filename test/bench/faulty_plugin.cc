// The plugin behind tables of its own, for soak_test.py: with FAULTY_PLUGIN=FAULT in the
// environment it does what riffle_soak has to find: node 1 alone, but for "left-out" and "deaf".
#include <dlfcn.h>
#include <fcntl.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "plugin/abi/collnet.h"
#include "plugin/abi/net.h"

extern "C" {
__attribute__((visibility("default"))) riffle::abi::NetV11 ncclNetPlugin_v11;
__attribute__((visibility("default"))) riffle::abi::CollNetV11 ncclCollNetPlugin_v11;
}

namespace riffle::faulty {
namespace {

constexpr int kFaultyRank = 1;
constexpr int kRightCalls = 10;
constexpr abi::NcclResult kRemoteError = 6;

abi::CollNetV11 real;
std::string fault;
std::atomic<int> own_rank{-1};
std::atomic<int> calls{0};

// A thread has one all-reduce under way.
struct Call {
  const float* send;
  float* receive;
  std::size_t count;  // the last one is a vote
  bool is_wrong;
};
thread_local Call call;

abi::NcclResult connect(void** handles, int ranks, int rank, void* listener, void** comm) {
  own_rank = rank;
  return real.connect(handles, ranks, rank, listener, comm);
}

abi::NcclResult iallreduce(void* comm, void* send, void* receive, std::size_t count,
                           abi::NcclDataType type, abi::NcclRedOp op, void* send_mr,
                           void* receive_mr, void** request) {
  call = {static_cast<const float*>(send), static_cast<float*>(receive), count,
          calls++ >= kRightCalls};
  return real.iallreduce(comm, send, receive, count, type, op, send_mr, receive_mr, request);
}

// The faulty node's part is in no sum of the others.
void leave_out() {
  for (std::size_t i = 0; i + 1 < call.count; ++i) {
    call.receive[i] -= std::ldexp(call.send[i], kFaultyRank - own_rank);
  }
}

abi::NcclResult test(void* request, int* done, int* size) {
  if (call.is_wrong && fault == "left-out" && own_rank != kFaultyRank) {
    const abi::NcclResult r = real.test(request, done, size);
    if (r == 0 && *done != 0) leave_out();
    return r;
  }
  if (!call.is_wrong || own_rank != kFaultyRank) return real.test(request, done, size);
  if (fault == "hang") return *done = 0;
  if (fault == "error") return kRemoteError;
  if (fault == "crash") std::raise(SIGSEGV);
  const abi::NcclResult r = real.test(request, done, size);
  if (r == 0 && *done != 0 && fault == "sum") call.receive[(call.count - 1) / 2] += 1;
  return r;
}

abi::NcclResult close_coll(void* comm) {
  if (fault == "descriptor" && own_rank == kFaultyRank) open("/dev/null", O_RDONLY | O_CLOEXEC);
  return real.closeColl(comm);
}

template <class Table>
Table table_of(void* library, const char* name) {
  const void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "faulty_plugin: %s\n", dlerror());
    std::abort();
  }
  return *static_cast<const Table*>(found);
}

const bool is_ready = [] {
  if (const char* const text = std::getenv("FAULTY_PLUGIN")) fault = text;
  if (fault == "deaf") setenv("RIFFLE_PEER_TIMEOUT", "60", 1);  // the soak's is 6
  void* const library = dlopen(RIFFLE_PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
  ncclNetPlugin_v11 = table_of<abi::NetV11>(library, "ncclNetPlugin_v11");
  real = table_of<abi::CollNetV11>(library, "ncclCollNetPlugin_v11");
  abi::CollNetV11 own = real;
  own.connect = connect;
  own.iallreduce = iallreduce;
  own.test = test;
  own.closeColl = close_coll;
  ncclCollNetPlugin_v11 = own;
  return true;
}();

}  // namespace
}  // namespace riffle::faulty
