// NET: the exported tables. The first successful init of a version decides what its table stands
// on: Riffle's own NET (net_own.h) or another library's (net_wire.h). So the tables are filled
// then, once; NCCL reads nothing but name and init before (every release from 2.12 to 2.30: its
// translations copy the members after init, and a table of its own version is read in place).
#include <cstdint>
#include <mutex>

#include "plugin/abi/net.h"
#include "plugin/entry/border.h"
#include "plugin/entry/context.h"
#include "plugin/entry/net_own.h"
#include "plugin/entry/net_wire.h"
#include "plugin/entry/options.h"

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

// Of a process that is to encrypt and cannot. An init that fails would make NCCL take its next
// network, which is in the clear; what ends the job is a device without properties.
Status& refusal() {
  static Status& why = *new Status();
  return why;
}

abi::NcclResult one_device(int* count) {
  *count = 1;
  return abi::kSuccess;
}

template <class Properties>
abi::NcclResult refuse_properties(int, Properties*) {
  return refuse("NET", refusal());
}

template <class Table>
Status start_refusing(const Status& why, Table* table) {
  static std::once_flag once;
  std::call_once(once, [&] {
    refusal() = why;
    table->devices = one_device;
    table->getProperties = refuse_properties;
  });
  return Status::ok();
}

bool must_encrypt() { return options().transport.encryption.is_on || !options().refusal; }

template <class Table>
Status start_encrypted(const NetStart& start, Table* table) {
  const Status status = options().refusal ? start_own(start, table) : options().refusal;
  return status ? status : start_refusing(status, table);
}

template <class Table>
abi::NcclResult begin(const NetStart& start) {
  if (start.context != nullptr) *start.context = nullptr;
  start_log(start.log);  // before the settings are read, which may have something to say
  bool encrypts = false;
  const abi::NcclResult code = guard("NET init", [&] {
    encrypts = must_encrypt();
    return encrypts ? start_encrypted(start, &exported<Table>()) : Status::ok();
  });
  if (encrypts || code != abi::kSuccess) return code;
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
