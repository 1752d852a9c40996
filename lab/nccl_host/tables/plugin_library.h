// A plugin's shared object, loaded as NCCL loads it: dlopen(RTLD_NOW | RTLD_LOCAL), tables looked
// up by name and version, NET mandatory, COLLNET, TUNER and PROFILER taken from the same file where
// they are wanted.
#pragma once

#include <memory>
#include <string>

#include "lab/nccl_host/tables/plugin_tables.h"
#include "topology/base/status.h"

namespace riffle::host {

struct TableVersions {
  int net = 11;      // 6 to 12
  int collnet = 11;  // 6 to 12, or 0: leave it
  int tuner = 5;     // 3 to 6, or 0: leave it
  int profiler = 5;  // 4 to 6, or 0: leave it
};

// Several communicators of one process share it, as in NCCL. The tables live as long as it does.
class PluginLibrary {
 public:
  // Fails when the file cannot be loaded or lacks a wanted table; says which.
  static Result<std::shared_ptr<PluginLibrary>> load(const std::string& path,
                                                     const TableVersions& versions);
  // Tables made by hand, for tests that watch the calls themselves.
  PluginLibrary(std::unique_ptr<NetTable> net, std::unique_ptr<CollNetTable> collnet,
                std::unique_ptr<TunerTable> tuner, std::unique_ptr<ProfilerTable> profiler = {});
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  NetTable& net() { return *net_; }
  CollNetTable* collnet() { return collnet_.get(); }     // null: not loaded
  TunerTable* tuner() { return tuner_.get(); }           // null: not loaded
  ProfilerTable* profiler() { return profiler_.get(); }  // null: not loaded

 private:
  void* handle_ = nullptr;
  std::unique_ptr<NetTable> net_;
  std::unique_ptr<CollNetTable> collnet_;
  std::unique_ptr<TunerTable> tuner_;
  std::unique_ptr<ProfilerTable> profiler_;
};

}  // namespace riffle::host
