// NET: the exported tables. The first successful init of a version decides what its table stands
// on: Riffle's own NET (net_own.h) or another library's (net_wire.h). So the tables are filled
// then, once; NCCL reads nothing but name and init before (every release from 2.12 to 2.30: its
// translations copy the members after init, and a table of its own version is read in place).
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <type_traits>

#include "plugin/abi/net.h"
#include "plugin/config/caught.h"
#include "plugin/entry/border.h"
#include "plugin/entry/context.h"
#include "plugin/entry/net_own.h"
#include "plugin/entry/net_wire.h"
#include "plugin/entry/options.h"
#include "plugin/entry/properties.h"

namespace riffle::entry::net_tables {
namespace {

// What every function answers before init, and after one that failed.
template <class Function>
struct BeforeInit;
template <class... Arguments>
struct BeforeInit<abi::NcclResult (*)(Arguments...)> {
  static abi::NcclResult refuse_call(Arguments...) noexcept {
    return refuse("NET", Code::kInvalidArgument, "called before init, or after one that failed");
  }
};

// NCCL 2.28 calls it after an init that failed, without a context.
abi::NcclResult finalize_nothing(void*) { return abi::kSuccess; }

template <class Table>
Table& exported();

template <class Table>
Status start_own(const NetStart& start, Table* table) {
  Status status = start.context == nullptr
                      ? start_process()
                      : start_communicator(start.comm_id, start.config, start.context);
  static std::once_flag once;
  if (status) std::call_once(once, [&] { fill_own_net(table); });
  return status;
}

// Of a process that is to encrypt and cannot. NCCL must not go on with its next network, which is
// in the clear, as it does (2.19 on) where init fails or a device has no properties. So it gets a
// device like any other, and the first listen or connect ends the job with the reason.
Status& refusal() {
  static Status& why = *new Status();
  return why;
}

template <class Function>
struct Refusing;
template <class... Arguments>
struct Refusing<abi::NcclResult (*)(Arguments...)> {
  static abi::NcclResult refuse_call(Arguments...) noexcept { return refuse("NET", refusal()); }
};

abi::NcclResult one_device(int* count) {
  *count = 1;
  return abi::kSuccess;
}

template <class Properties>
abi::NcclResult some_properties(int device, Properties* properties) {
  static const Device& some = *new Device{.name = "refused", .speed_mbps = 1000};
  describe(some, device, properties);
  return abi::kSuccess;
}

template <class Table>
void fill_refusing(Table* table) {
  table->devices = one_device;
  table->getProperties = some_properties;
  table->listen = Refusing<decltype(table->listen)>::refuse_call;
  table->connect = Refusing<decltype(table->connect)>::refuse_call;
}

// NCCL 2.28.3 to 2.29.7, which take v11, forget the plugin with the last communicator unless they
// are told to count: the next one would have NCCL's own sockets.
template <class Table>
Status stays_loaded() {
  const char* const counts = std::getenv("NCCL_NET_PLUGIN_REF_COUNT");
  const bool is_told = counts != nullptr && *counts != 0 && *counts != '0';
  if (!std::is_same_v<Table, abi::NetV11> || is_told) return Status::ok();
  return invalid_argument(
      "RIFFLE_ENCRYPT=1 with NCCL 2.28 or 2.29 needs NCCL_NET_PLUGIN_REF_COUNT=1: without it they "
      "forget Riffle when the last communicator ends, and what follows is not encrypted");
}

template <class Table>
Status can_encrypt() noexcept {
  try {
    if (!options().refusal) return options().refusal;
    if (Status s = stays_loaded<Table>(); !s) return s;
    return find_devices();
  } catch (...) {
    return caught();
  }
}

// Never fails: what a communicator lacks then is but its id.
template <class Table>
Status start_encrypted(const NetStart& start, Table* table) {
  static const bool can = [table] {
    refusal() = can_encrypt<Table>();
    if (refusal()) return true;
    (void)refuse("NET init", refusal());
    fill_refusing(table);
    return false;
  }();
  if (can) {
    catching([&] { (void)start_own(start, table); },
             [](const Status& why) { log_caught("NET init", why); });
  }
  return Status::ok();
}

bool must_encrypt() { return options().transport.encryption.is_on || !options().refusal; }

template <class Table>
abi::NcclResult begin(const NetStart& start) {
  if (start.context != nullptr) *start.context = nullptr;
  start_log(start.log);
  bool must = false;
  const abi::NcclResult code = guard("NET init", [&] {
    must = must_encrypt();
    return must ? start_encrypted(start, &exported<Table>()) : Status::ok();
  });
  if (must || code != abi::kSuccess) return code;
  return start_or_decline("NET init", start.log, is_left_to_nccl, [&] {
    Table* const table = &exported<Table>();
    return has_wire() ? start_wire(start, table) : start_own(start, table);
  });
}

// -- init, by the parameter lists of the versions

template <class Table>
abi::NcclResult init(abi::LogFn log) {
  return begin<Table>({{.log = log}, nullptr});
}

template <class Table>
abi::NcclResult init(abi::LogFn log, abi::ProfilerFn profiler) {
  return begin<Table>({{.log = log, .profiler = profiler}, nullptr});
}

template <class Table>
abi::NcclResult init(void** context, std::uint64_t comm_id, abi::NetCommConfig* config,
                     abi::LogFn log, abi::ProfilerFn profiler) {
  return begin<Table>({{comm_id, config, log, profiler}, context});
}

template <class Member>
constexpr void refuse_until_init(Member& member) {
  member = BeforeInit<Member>::refuse_call;
}

template <class Table>
constexpr Table make_table() {
  Table table{};
  table.name = kPluginName;
  table.init = init<Table>;
  refuse_until_init(table.devices);
  refuse_until_init(table.getProperties);
  refuse_until_init(table.listen);
  refuse_until_init(table.connect);
  refuse_until_init(table.accept);
  refuse_until_init(table.regMr);
  refuse_until_init(table.deregMr);
  refuse_until_init(table.isend);
  refuse_until_init(table.irecv);
  refuse_until_init(table.iflush);
  refuse_until_init(table.test);
  refuse_until_init(table.closeSend);
  refuse_until_init(table.closeRecv);
  refuse_until_init(table.closeListen);
  if constexpr (requires { table.finalize; }) table.finalize = finalize_nothing;
  return table;
}

}  // namespace
}  // namespace riffle::entry::net_tables

#define RIFFLE_NET(version)                                                                   \
  extern "C" {                                                                                \
  __attribute__((                                                                             \
      visibility("default"))) constinit riffle::abi::NetV##version ncclNetPlugin_v##version = \
      riffle::entry::net_tables::make_table<riffle::abi::NetV##version>();                    \
  }                                                                                           \
  namespace riffle::entry::net_tables {                                                       \
  namespace {                                                                                 \
  template <>                                                                                 \
  abi::NetV##version& exported() {                                                            \
    return ncclNetPlugin_v##version;                                                          \
  }                                                                                           \
  }                                                                                           \
  }
RIFFLE_NET(5)
RIFFLE_NET(6)
RIFFLE_NET(7)
RIFFLE_NET(8)
RIFFLE_NET(9)
RIFFLE_NET(10)
RIFFLE_NET(11)
RIFFLE_NET(12)
