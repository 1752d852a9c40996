// The objects of a replay by the names that the trace gives them, shared by its threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lab/nccl_host/memory_region.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host {

// "net 3", "coll 0", "listen 5", ...
inline std::string object_name(const char* kind, const Json& id) {
  return std::string(kind) + " " + std::to_string(id.get<int>());
}

// "mr 24" or "buf 3": which region a pointer of the trace lies in.
inline std::string region_name(const Json& pointer) {
  return pointer.contains("mr") ? object_name("mr", pointer["mr"])
                                : object_name("buf", pointer["buf"]);
}

class ReplayObjects {
 public:
  explicit ReplayObjects(int deadline_ms) : deadline_(std::chrono::milliseconds(deadline_ms)) {}

  void put(const std::string& name, void* object) {
    std::scoped_lock lock(mutex_);
    objects_[name] = object;
    changed_.notify_all();
  }
  // Waits until it exists; null: it never came, or the replay failed elsewhere.
  void* get(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, deadline_, [&] { return failed_ || objects_.count(name) != 0; });
    auto it = objects_.find(name);
    return it == objects_.end() || failed_ ? nullptr : it->second;
  }
  // Memory of a region; asked for again with the same size it is the same.
  std::byte* region(const std::string& name, std::size_t bytes) {
    std::scoped_lock lock(mutex_);
    MemoryRegion& r = regions_[name];
    if (r.bytes() < bytes) r.allocate(bytes);
    return r.data();
  }
  std::byte* at(const Json& pointer) {
    std::scoped_lock lock(mutex_);
    return regions_[region_name(pointer)].data() + pointer["off"].get<std::size_t>();
  }
  void unmap(const std::string& name) {
    std::scoped_lock lock(mutex_);
    regions_[name].release();
  }
  // Memory handles of (object, region), one per registration.
  void put_handle(const std::string& object, const std::string& region, void* handle) {
    std::scoped_lock lock(mutex_);
    handles_[object + "/" + region].push_back(handle);
    changed_.notify_all();
  }
  bool get_handle(const std::string& object, const std::string& region, void** handle) {
    std::unique_lock lock(mutex_);
    auto& list = handles_[object + "/" + region];
    changed_.wait_for(lock, deadline_, [&] { return failed_ || !list.empty(); });
    if (failed_ || list.empty()) return false;
    *handle = list.back();
    return true;
  }
  void* take_handle(const std::string& object, const std::string& region) {
    std::scoped_lock lock(mutex_);
    auto& list = handles_[object + "/" + region];
    void* handle = list.back();
    list.pop_back();
    return handle;
  }
  // Transfers done per object; the teardown of an object waits for those recorded before it.
  void count_transfer(const std::string& object) {
    std::scoped_lock lock(mutex_);
    ++transfers_[object];
    changed_.notify_all();
  }
  bool wait_transfers(const std::string& object, int wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline_, [&] {
      return failed_ || transfers_[object] >= wanted;
    }) && !failed_;
  }
  // Ends all waits; the first cause is kept.
  void fail(Status cause) {
    std::scoped_lock lock(mutex_);
    if (!failed_) cause_ = std::move(cause);
    failed_ = true;
    changed_.notify_all();
  }
  Status status() {
    std::scoped_lock lock(mutex_);
    return cause_;
  }
  bool failed() {
    std::scoped_lock lock(mutex_);
    return failed_;
  }

 private:
  std::chrono::milliseconds deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, void*> objects_;
  std::map<std::string, MemoryRegion> regions_;
  std::map<std::string, std::vector<void*>> handles_;
  std::map<std::string, int> transfers_;
  bool failed_ = false;
  Status cause_;
};

}  // namespace riffle::host
