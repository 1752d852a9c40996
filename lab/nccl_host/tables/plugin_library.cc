#include "lab/nccl_host/tables/plugin_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "lab/nccl_host/tables/plugin_versions.h"

namespace riffle::host {
namespace {

template <template <class, int> class Adapter, class Base, class Table, int kVersion>
std::unique_ptr<Base> wrap(const void* symbol) {
  return std::make_unique<Adapter<Table, kVersion>>(static_cast<const Table*>(symbol));
}

std::unique_ptr<NetTable> wrap_net(const void* s, int version) {
  switch (version) {
    case 6:
      return wrap<NetAdapter, NetTable, abi::NetV6, 6>(s);
    case 7:
      return wrap<NetAdapter, NetTable, abi::NetV7, 7>(s);
    case 8:
      return wrap<NetAdapter, NetTable, abi::NetV8, 8>(s);
    case 9:
      return wrap<NetAdapter, NetTable, abi::NetV9, 9>(s);
    case 10:
      return wrap<NetAdapter, NetTable, abi::NetV10, 10>(s);
    case 11:
      return wrap<NetAdapter, NetTable, abi::NetV11, 11>(s);
    case 12:
      return wrap<NetAdapter, NetTable, abi::NetV12, 12>(s);
    default:
      return nullptr;
  }
}

std::unique_ptr<CollNetTable> wrap_collnet(const void* s, int version) {
  switch (version) {
    case 6:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV6, 6>(s);
    case 7:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV7, 7>(s);
    case 8:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV8, 8>(s);
    case 9:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV9, 9>(s);
    case 10:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV10, 10>(s);
    case 11:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV11, 11>(s);
    case 12:
      return wrap<CollNetAdapter, CollNetTable, abi::CollNetV12, 12>(s);
    default:
      return nullptr;
  }
}

std::unique_ptr<TunerTable> wrap_tuner(const void* s, int version) {
  switch (version) {
    case 3:
      return wrap<TunerAdapter, TunerTable, abi::TunerV3, 3>(s);
    case 4:
      return wrap<TunerAdapter, TunerTable, abi::TunerV4, 4>(s);
    case 5:
      return wrap<TunerAdapter, TunerTable, abi::TunerV5, 5>(s);
    case 6:
      return wrap<TunerAdapter, TunerTable, abi::TunerV6, 6>(s);
    default:
      return nullptr;
  }
}

template <class Table, class Event, int kVersion>
std::unique_ptr<ProfilerTable> wrap_profiler_as(const void* symbol) {
  return std::make_unique<ProfilerAdapter<Table, Event, abi::ProfilerStateV4, kVersion>>(
      static_cast<const Table*>(symbol));
}

std::unique_ptr<ProfilerTable> wrap_profiler(const void* s, int version) {
  switch (version) {
    case 4:
      return wrap_profiler_as<abi::ProfilerV4, abi::ProfilerEventV4, 4>(s);
    case 5:
      return wrap_profiler_as<abi::ProfilerV5, abi::ProfilerEventV5, 5>(s);
    case 6:
      return wrap_profiler_as<abi::ProfilerV6, abi::ProfilerEventV6, 6>(s);
    default:
      return nullptr;
  }
}

// One table of the library, or a Status that names the symbol that is missing or not understood.
template <class Base>
Result<std::unique_ptr<Base>> find(void* library, const std::string& path, const char* prefix,
                                   int version, std::unique_ptr<Base> (*adapt)(const void*, int)) {
  const std::string symbol = prefix + std::to_string(version);
  const void* address = dlsym(library, symbol.c_str());
  if (address == nullptr) return invalid_argument(path + " does not export " + symbol);
  std::unique_ptr<Base> table = adapt(address, version);
  if (table == nullptr) {
    return invalid_argument("this host side cannot drive " + symbol +
                            " (NET and COLLNET 6 to 12, TUNER 3 to 6, PROFILER 4 to 6)");
  }
  return table;
}

}  // namespace

Result<std::shared_ptr<PluginLibrary>> PluginLibrary::load(const std::string& path,
                                                           const TableVersions& versions) {
  // This host has no transport of its own that a plugin could leave the network to.
  ::setenv("RIFFLE_NET", "tcp", 0);
  // It keeps a plugin to its end, as NCCL 2.28 and 2.29 do with this.
  ::setenv("NCCL_NET_PLUGIN_REF_COUNT", "1", 0);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return system_error("cannot load the plugin " + path + ": " + dlerror());
  // From here on the object closes the library whatever happens.
  auto result = std::make_shared<PluginLibrary>(nullptr, nullptr, nullptr);
  result->handle_ = library;
  auto net = find<NetTable>(library, path, "ncclNetPlugin_v", versions.net, wrap_net);
  if (!net) return net.status();
  result->net_ = std::move(*net);
  if (versions.collnet != 0) {
    auto t =
        find<CollNetTable>(library, path, "ncclCollNetPlugin_v", versions.collnet, wrap_collnet);
    if (!t) return t.status();
    result->collnet_ = std::move(*t);
  }
  if (versions.tuner != 0) {
    auto t = find<TunerTable>(library, path, "ncclTunerPlugin_v", versions.tuner, wrap_tuner);
    if (!t) return t.status();
    result->tuner_ = std::move(*t);
  }
  if (versions.profiler != 0) {
    auto t = find<ProfilerTable>(library, path, "ncclProfiler_v", versions.profiler, wrap_profiler);
    if (!t) return t.status();
    result->profiler_ = std::move(*t);
  }
  return result;
}

PluginLibrary::PluginLibrary(std::unique_ptr<NetTable> net, std::unique_ptr<CollNetTable> collnet,
                             std::unique_ptr<TunerTable> tuner,
                             std::unique_ptr<ProfilerTable> profiler)
    : net_(std::move(net)),
      collnet_(std::move(collnet)),
      tuner_(std::move(tuner)),
      profiler_(std::move(profiler)) {}

PluginLibrary::~PluginLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace riffle::host
