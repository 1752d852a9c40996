#include "test/nccl_host/recording_tables.h"

#include <cstdint>

namespace riffle::host {
namespace {

constexpr int kRemoteError = 6;

// Objects are their numbers, counted from 1 because null means "not yet".
void* to_pointer(int id) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(id) + 1); }
int to_id(void* p) { return static_cast<int>(reinterpret_cast<std::intptr_t>(p)) - 1; }

void set_properties(DeviceProperties* p) {
  *p = {.name = "record", .pointer_types = kPointerHost, .speed_mbps = 10000, .max_comms = 65536};
}

class RecordingNet final : public NetTable {
 public:
  explicit RecordingNet(Recording* r) : r_(*r) {}
  const char* name() const override { return "record"; }
  int init(std::uint64_t, void** context) override { return *context = nullptr, kSuccess; }
  int finalize(void*) override { return kSuccess; }
  int devices(int* count) override { return *count = 1, kSuccess; }
  int properties(int, DeviceProperties* out) override { return set_properties(out), kSuccess; }
  int listen(void*, int, void*, void** comm) override { return *comm = to_pointer(0), kSuccess; }
  int connect(void*, int, void*, void** comm) override {
    const int id = next_++;
    r_.sends[id];
    return *comm = to_pointer(id), kSuccess;
  }
  int accept(void*, void** comm) override {
    const int id = next_++;
    r_.receives[id];
    return *comm = to_pointer(id), kSuccess;
  }
  int register_memory(void*, void*, std::size_t, void** h) override {
    return *h = nullptr, kSuccess;
  }
  int deregister_memory(void*, void*) override { return kSuccess; }
  int isend(void* comm, void*, std::size_t bytes, int tag, void*, void** request) override {
    std::scoped_lock lock(mutex_);  // communicators have threads of their own
    r_.sends.at(to_id(comm)).push_back({tag, bytes});
    return *request = to_pointer(0), kSuccess;
  }
  int irecv(void* comm, int, void**, std::size_t* bytes, int* tags, void**,
            void** request) override {
    std::scoped_lock lock(mutex_);
    r_.receives.at(to_id(comm)).push_back({tags[0], bytes[0]});
    return *request = to_pointer(0), kSuccess;
  }
  int test(void*, int* done, int*) override { return *done = 1, kSuccess; }
  int close_send(void*) override { return kSuccess; }
  int close_recv(void*) override { return kSuccess; }
  int close_listen(void*) override { return kSuccess; }

 private:
  Recording& r_;
  std::mutex mutex_;
  int next_ = 0;
};

class RecordingCollNet final : public CollNetTable {
 public:
  RecordingCollNet(Recording* r, const Faults& faults) : r_(*r), faults_(faults) {}
  const char* name() const override { return "record"; }
  int init(std::uint64_t, void** context) override { return *context = nullptr, kSuccess; }
  int finalize(void*) override { return kSuccess; }
  int devices(int* count) override { return *count = faults_.collnet, kSuccess; }
  int properties(int, DeviceProperties* out) override { return set_properties(out), kSuccess; }
  int listen(void*, int, void*, void** comm) override { return *comm = to_pointer(0), kSuccess; }
  int connect(void**, int, int, void*, void** comm) override {
    if (faults_.connect_fails) return kRemoteError;
    r_.all_reduces[next_];
    return *comm = to_pointer(next_++), kSuccess;
  }
  int reduce_support(int, int, int* supported) override { return *supported = 1, kSuccess; }
  int register_memory(void* comm, void* data, std::size_t, void** handle) override {
    regions_[to_id(comm)] = static_cast<std::byte*>(data);
    ++r_.registrations[to_id(comm)];
    return *handle = nullptr, kSuccess;
  }
  int deregister_memory(void* comm, void*) override {
    ++r_.deregistrations[to_id(comm)];
    return kSuccess;
  }
  int iallreduce(void* comm, void* send, void* recv, std::size_t count, int type, int op, void*,
                 void*, void** request) override {
    std::scoped_lock lock(mutex_);
    const int n = calls_++;
    if (n == faults_.all_reduce_fails_at) return kRemoteError;
    const std::byte* base = regions_.at(to_id(comm));
    r_.all_reduces[to_id(comm)].push_back(
        {count, type, op, static_cast<std::size_t>(static_cast<std::byte*>(send) - base),
         static_cast<std::size_t>(static_cast<std::byte*>(recv) - base)});
    return *request = to_pointer(n), kSuccess;
  }
  int test(void* request, int* done, int*) override {
    if (to_id(request) == faults_.test_fails_at) return kRemoteError;
    return *done = 1, kSuccess;
  }
  int close_coll(void* comm) override {
    r_.close_after_deregister &= r_.deregistrations[to_id(comm)] == r_.registrations[to_id(comm)];
    return kSuccess;
  }
  int close_listen(void*) override { return kSuccess; }

 private:
  Recording& r_;
  Faults faults_;
  std::mutex mutex_;
  std::map<int, std::byte*> regions_;
  int next_ = 0;
  int calls_ = 0;
};

class ForcingTuner final : public TunerTable {
 public:
  explicit ForcingTuner(bool force) : force_(force) {}
  int init(std::uint64_t, std::size_t, std::size_t, void** c) override {
    return *c = nullptr, kSuccess;
  }
  int choose(void*, int, std::size_t, int, float (*costs)[kProtocols], int*) override {
    float& entry = costs[static_cast<int>(3)][2];  // CollNetChain, Simple
    if (force_ && entry >= 0) entry = 0;
    return kSuccess;
  }
  int finalize(void*) override { return kSuccess; }

 private:
  bool force_;
};

}  // namespace

std::shared_ptr<PluginLibrary> make_recording_library(Recording* recording, const Faults& faults) {
  return std::make_shared<PluginLibrary>(std::make_unique<RecordingNet>(recording),
                                         std::make_unique<RecordingCollNet>(recording, faults),
                                         std::make_unique<ForcingTuner>(faults.force_collnet));
}

}  // namespace riffle::host
