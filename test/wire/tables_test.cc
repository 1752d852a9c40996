// What NCCL sees of a library through the tables that ship: properties, optional functions,
// contexts, refusals; for every version of NCCL's table over every version of the library.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "test/wire/rig.h"

namespace riffle::wire_tables_test {
namespace {

using nccl_net::kVersion;
using wire::finalize;
using wire::for_tables_from;
using wire::in_process;
using wire::init;
using wire::plugin_table;
using wire::probe;
using wire::strict_library;

// The second argument of makeVDevice.
template <class Function>
struct MemberList;
template <class List>
struct MemberList<abi::NcclResult (*)(int*, List*)> {
  using Type = List;
};
template <class Function>
using MembersOf = typename MemberList<Function>::Type;

class Tables : public ::testing::TestWithParam<int> {
 protected:
  const int version = GetParam();  // of the library
  wire::Settings settings{{"RIFFLE_NET", strict_library(version)}};
  strict::Probe seen() { return probe(strict_library(version)); }

  // Two connections over a table, opened as its version does it.
  template <class Table>
  struct Open {
    Table& t;
    void *context = nullptr, *listener = nullptr, *send = nullptr, *recv = nullptr;
    abi::NetDevHandle *send_device = untouched(), *recv_device = untouched();
    char handle[128] = {};
    char data[64] = {};

    static abi::NetDevHandle* untouched() { return reinterpret_cast<abi::NetDevHandle*>(0x10); }

    explicit Open(Table& table, std::uint64_t comm_id = 7, int traffic_class = -1) : t(table) {
      EXPECT_EQ(init(t, &context, comm_id, traffic_class), 0) << wire::all_lines();
      listen();
      connect(traffic_class);
      accept();
    }
    void listen() {
      if constexpr (kVersion<Table> >= 11) {
        EXPECT_EQ(t.listen(context, 0, handle, &listener), 0);
      }
      if constexpr (kVersion<Table> < 11) {
        EXPECT_EQ(t.listen(0, handle, &listener), 0);
      }
    }
    void connect([[maybe_unused]] int traffic_class) {
      if constexpr (kVersion<Table> >= 11) {
        EXPECT_EQ(t.connect(context, 0, handle, &send, &send_device), 0);
      } else if constexpr (kVersion<Table> == 10) {
        abi::NetCommConfig config{traffic_class};
        EXPECT_EQ(t.connect(0, &config, handle, &send, &send_device), 0);
      } else if constexpr (kVersion<Table> >= 7) {
        EXPECT_EQ(t.connect(0, handle, &send, &send_device), 0);
      } else {
        EXPECT_EQ(t.connect(0, handle, &send), 0);
      }
    }
    void accept() {
      if constexpr (kVersion<Table> >= 7) {
        EXPECT_EQ(t.accept(listener, &recv, &recv_device), 0);
      }
      if constexpr (kVersion<Table> < 7) {
        EXPECT_EQ(t.accept(listener, &recv), 0);
      }
    }
    void close() {
      EXPECT_EQ(t.closeSend(send), 0);
      EXPECT_EQ(t.closeRecv(recv), 0);
      EXPECT_EQ(t.closeListen(listener), 0);
      EXPECT_EQ(finalize(t, context), 0);
    }
    int isend(std::size_t size, void* region, void** request) {
      if constexpr (kVersion<Table> >= 10) {
        return t.isend(send, data, size, 1, region, nullptr, request);
      } else {
        return t.isend(send, data, size, 1, region, request);
      }
    }
    int irecv(int n, std::size_t size, void* region, void** request) {
      std::vector<void*> at(static_cast<std::size_t>(n), data), regions(at.size(), region);
      std::vector<int> tags(at.size(), 1);
      [[maybe_unused]] std::vector<int> small(at.size(), static_cast<int>(size));
      [[maybe_unused]] std::vector<std::size_t> large(at.size(), size);
      if constexpr (kVersion<Table> >= 10) {
        std::vector<void*> profilers(at.size(), data);
        return t.irecv(recv, n, at.data(), large.data(), tags.data(), regions.data(),
                       profilers.data(), request);
      } else if constexpr (kVersion<Table> == 9) {
        return t.irecv(recv, n, at.data(), large.data(), tags.data(), regions.data(), request);
      } else {
        return t.irecv(recv, n, at.data(), small.data(), tags.data(), regions.data(), request);
      }
    }
  };
};

TEST_P(Tables, ShowTheLibrarysProperties) {
  settings["STRICT_NET_OFFLOAD"] = "1";
  in_process(settings, [&] {
    for_tables_from(version, [&]<class Table>() {
      SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
      Table& t = plugin_table<Table>();
      void* context = nullptr;
      ASSERT_EQ(init(t, &context), 0) << wire::all_lines();
      EXPECT_STREQ(t.name, "riffle");
      int count = 0;
      EXPECT_EQ(t.devices(&count), 0);
      EXPECT_EQ(count, 2);
      nccl_net::PropertiesOf<Table> p;
      ASSERT_EQ(t.getProperties(1, &p), 0);
      EXPECT_STREQ(p.name, "strict1");
      EXPECT_STREQ(p.pciPath, "/sys/devices/strict");
      EXPECT_EQ(p.guid, 0x5712c8u);
      EXPECT_EQ(p.ptrSupport, abi::kPtrHost | abi::kPtrCuda | abi::kPtrDmaBuf);
      EXPECT_EQ(p.speed, 12345);
      EXPECT_EQ(p.port, 3);
      EXPECT_EQ(p.latency, 2.5F);
      EXPECT_EQ(p.maxComms, 77);
      EXPECT_EQ(p.maxRecvs, 8);
      if constexpr (requires { p.netDeviceType; }) {
        EXPECT_EQ(p.netDeviceType, version >= 7 ? abi::kDeviceUnpack : abi::kDeviceHost);
        EXPECT_EQ(p.netDeviceVersion, version >= 7 ? abi::kDeviceVersionUnpack : 0);
      }
      if constexpr (requires { p.regIsGlobal; }) {
        EXPECT_EQ(p.regIsGlobal, version >= 8 ? 1 : 0);
      }
      if constexpr (requires { p.vProps; }) {
        EXPECT_EQ(p.forceFlush, version >= 9 ? 1 : 0);
        EXPECT_EQ(p.vProps.ndevs, 1);
        EXPECT_EQ(p.vProps.devs[0], 1);
        EXPECT_EQ(p.maxP2pBytes, std::size_t{1} << (version >= 9 ? 33 : 30));
        EXPECT_EQ(p.maxCollBytes, std::size_t{1} << (version >= 9 ? 34 : 29));
      }
      if constexpr (requires { p.maxMultiRequestSize; }) {
        EXPECT_EQ(p.maxMultiRequestSize, version >= 11 ? 4 : 1);
      }
      if constexpr (requires { p.railId; }) {
        EXPECT_EQ(p.railId, version >= 12 ? 5 : -1);
        EXPECT_EQ(p.planeId, version >= 12 ? 6 : -1);
      }
      EXPECT_EQ(t.getProperties(2, &p), abi::kInvalidArgument) << "the library's own answer";
      EXPECT_EQ(finalize(t, context), 0);
    });
  });
}

TEST_P(Tables, HaveTheOptionalFunctionsThatBothKnow) {
  settings["STRICT_NET_OFFLOAD"] = "1";
  in_process(settings, [&] {
    for_tables_from(version, [&]<class Table>() {
      SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
      Table& t = plugin_table<Table>();
      Open<Table> o(t);
      void* region = nullptr;
      if constexpr (requires { t.regMrDmaBuf; }) {
        ASSERT_EQ(t.regMrDmaBuf != nullptr, version >= 6);
        if (t.regMrDmaBuf != nullptr) {
          const int fd = ::open("/dev/null", O_RDONLY);
          EXPECT_EQ(t.regMrDmaBuf(o.send, o.data, 64, abi::kPtrCuda, 0, fd, &region), 0);
          ::close(fd);
          EXPECT_EQ(this->seen().dma_buf_fd, fd);
          EXPECT_EQ(t.deregMr(o.send, region), 0);
        }
      }
      EXPECT_EQ(t.regMr(o.recv, o.data, 64, abi::kPtrCuda, &region), 0) << "GPU memory";
      if constexpr (requires { t.getDeviceMr; }) {
        ASSERT_EQ(t.getDeviceMr != nullptr, version >= 7);
        ASSERT_EQ(t.irecvConsumed != nullptr, version >= 7);
        EXPECT_EQ(o.send_device == o.untouched(), version < 7);
        EXPECT_EQ(o.recv_device == o.untouched(), version < 7);
        if (version >= 7) {
          EXPECT_EQ(o.recv_device->netDeviceVersion, abi::kDeviceVersionUnpack);
          void* mapped = nullptr;
          EXPECT_EQ(t.getDeviceMr(o.recv, region, &mapped), 0);
          EXPECT_EQ(mapped, o.data);
        }
      }
      void* request = nullptr;
      void* at = o.data;
      int size = 64, done = 0;
      EXPECT_EQ(t.iflush(o.recv, 1, &at, &size, &region, &request), 0);
      ASSERT_NE(request, nullptr);
      EXPECT_EQ(t.test(request, &done, nullptr), 0);
      EXPECT_EQ(done, 1);
      if constexpr (requires { t.irecvConsumed; }) {
        if (t.irecvConsumed != nullptr) {
          EXPECT_EQ(t.irecvConsumed(o.recv, 0, request), 0);
          EXPECT_EQ(this->seen().consumed, request);
        }
      }
      EXPECT_EQ(t.deregMr(o.recv, region), 0);
      o.close();
    });
  });
}

TEST_P(Tables, JoinDevices) {
  in_process(settings, [&] {
    for_tables_from(version, [&]<class Table>() {
      if constexpr (requires(Table t) { t.makeVDevice; }) {
        SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
        Table& t = plugin_table<Table>();
        void* context = nullptr;
        ASSERT_EQ(init(t, &context), 0);
        ASSERT_EQ(t.makeVDevice != nullptr, version >= 9);
        if (t.makeVDevice != nullptr) {
          MembersOf<decltype(t.makeVDevice)> members{.ndevs = 2, .devs = {1, 0}};
          int device = -1;
          EXPECT_EQ(t.makeVDevice(&device, &members), 0);
          EXPECT_GE(device, 2);
          EXPECT_EQ(this->seen().members.ndevs, 2);
          EXPECT_EQ(this->seen().members.devs[0], 1);
          nccl_net::PropertiesOf<Table> p;
          ASSERT_EQ(t.getProperties(device, &p), 0);
          EXPECT_EQ(p.vProps.ndevs, 2);
          EXPECT_EQ(p.vProps.devs[0], 1);
          EXPECT_EQ(p.vProps.devs[1], 0);
          if (kVersion<Table> == 12 && version < 12) {
            members.ndevs = 5;  // an older library has room for 4
            EXPECT_EQ(t.makeVDevice(&device, &members), abi::kInvalidArgument);
          }
        }
        EXPECT_EQ(finalize(t, context), 0);
      }
    });
  });
}

TEST_P(Tables, KeepContextsApart) {
  in_process(settings, [&] {
    for_tables_from(std::max(version, 10), [&]<class Table>() {
      SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
      Table& t = plugin_table<Table>();
      for (int again = 0; again < 2; ++again) {  // finalize of all, and once more from the start
        Open<Table> one(t, 101, 3), two(t, 102, 4);
        if (version >= 11) {
          EXPECT_EQ(this->seen().contexts, 2);
          EXPECT_EQ(this->seen().connect_comm_id, 102u);
        }
        if (version >= 10) {
          EXPECT_EQ(this->seen().traffic_class, 4);
        }
        if constexpr (requires { t.setNetAttr; }) {
          ASSERT_EQ(t.setNetAttr != nullptr, version >= 11);
          if (t.setNetAttr != nullptr) {
            abi::NetAttr attributes{.op = 4, .algo = 2, .proto = 1};
            EXPECT_EQ(t.setNetAttr(one.context, &attributes), 0);
            EXPECT_EQ(this->seen().attributes_comm_id, 101u);
            EXPECT_EQ(this->seen().attributes.algo, 2u);
          }
          EXPECT_EQ(t.finalize(nullptr), 0) << "2.28 does so after a failed init";
        }
        one.close();
        two.close();
        EXPECT_EQ(this->seen().contexts, 0);
        if constexpr (kVersion<Table> >= 11) {
          void* listener = nullptr;
          EXPECT_EQ(t.listen(one.context, 0, one.handle, &listener), abi::kInvalidArgument);
          EXPECT_EQ(t.connect(one.context, 0, one.handle, &listener, nullptr),
                    abi::kInvalidArgument);
          EXPECT_EQ(t.finalize(one.context), abi::kInvalidArgument) << "a second time";
          EXPECT_GE(wire::count_lines(2, "a context that init did not give"), 3);
        }
      }
      EXPECT_EQ(this->seen().inits - this->seen().finalizes, version >= 11 ? 0 : 1);
    });
  });
}

TEST_P(Tables, TellTheProfilersHandleAndTheOptionalCompletion) {
  in_process(settings, [&] {
    for_tables_from(version, [&]<class Table>() {
      SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
      Open<Table> o(plugin_table<Table>());
      void *region = nullptr, *request = reinterpret_cast<void*>(abi::kOptionalRecvCompletion);
      ASSERT_EQ(o.t.regMr(o.recv, o.data, 64, abi::kPtrHost, &region), 0);
      ASSERT_EQ(o.irecv(1, 64, region, &request), 0);
      EXPECT_NE(request, nullptr);
      const strict::Probe p = this->seen();
      const bool has_handle = kVersion<Table> >= 10 && version >= 10;
      EXPECT_EQ(p.profiler_handle, has_handle ? o.data : nullptr);
      const bool is_cleared = kVersion<Table> >= 9 && version <= 8;
      EXPECT_EQ(p.request_before, is_cleared ? nullptr : reinterpret_cast<void*>(1));
      EXPECT_EQ(o.t.deregMr(o.recv, region), 0);
      o.close();
    });
  });
}

// A library with int sizes cannot be asked for more; it is not called then.
TEST_P(Tables, RefuseWhatTheLibraryCannotExpress) {
  in_process(settings, [&] {
    for_tables_from(std::max(version, 9), [&]<class Table>() {
      if constexpr (kVersion<Table> >= 9) {
        SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
        Open<Table> o(plugin_table<Table>());
        void *region = nullptr, *request = nullptr;
        constexpr std::size_t kHuge = std::size_t{1} << 31;
        const int large = o.t.regMr(o.recv, o.data, kHuge, abi::kPtrHost, &region);
        EXPECT_EQ(large, version <= 7 ? abi::kInternalError : abi::kSuccess);
        if (version <= 8) {
          EXPECT_EQ(o.irecv(1, (std::size_t{1} << 30) + 1, region, &request), abi::kInternalError);
          EXPECT_EQ(o.irecv(65, 8, region, &request), abi::kInternalError);
          EXPECT_EQ(o.isend(kHuge, region, &request), abi::kInternalError);
        }
        if (large == abi::kSuccess) {
          EXPECT_EQ(o.t.deregMr(o.recv, region), 0);
        }
        o.close();
      }
    });
  });
}

TEST_P(Tables, RefuseCallsBeforeInit) {
  in_process(settings, [&] {
    for_tables_from(5, [&]<class Table>() {
      SCOPED_TRACE("table v" + std::to_string(kVersion<Table>));
      Table& t = plugin_table<Table>();
      int count = 0, done = 0;
      nccl_net::PropertiesOf<Table> p;
      void* out = nullptr;
      EXPECT_EQ(t.devices(&count), abi::kInvalidArgument);
      EXPECT_EQ(t.getProperties(0, &p), abi::kInvalidArgument);
      EXPECT_EQ(t.regMr(&count, &count, 4, 1, &out), abi::kInvalidArgument);
      EXPECT_EQ(t.test(&count, &done, nullptr), abi::kInvalidArgument);
      EXPECT_EQ(t.closeListen(&count), abi::kInvalidArgument);
      EXPECT_EQ(finalize(t, nullptr), 0);
    });
    EXPECT_EQ(this->seen().inits, 0);
  });
}

// As NCCL itself would not find a table in it.
TEST_P(Tables, DeclineALibraryThatIsNewer) {
  in_process(settings, [&] {
    for_tables_from(5, [&]<class Table>() {
      if (kVersion<Table> >= version) return;
      void* context = &context;
      EXPECT_NE(init(plugin_table<Table>(), &context), 0);
      if (kVersion<Table> >= 11) {
        EXPECT_EQ(context, nullptr);
      }
      const std::string said = "cannot serve NCCL's NET v" + std::to_string(kVersion<Table>) +
                               ": it has only newer tables";
      EXPECT_EQ(wire::count_lines(2, said), 1) << wire::all_lines();
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Library, Tables, ::testing::Range(5, 13),
                         [](const auto& info) { return "V" + std::to_string(info.param); });

}  // namespace
}  // namespace riffle::wire_tables_test
