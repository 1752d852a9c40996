// A library's own COLLNET where all-reduces are left to NCCL: every version of NCCL's table over
// every version of the library's; and where Riffle's own takes its place, or none is there.
#include "test/wire/rig.h"
#include "test/wire/strict/collnet_probe.h"

namespace riffle::collnet_passed_test {
namespace {

using nccl_net::kVersion;
using wire::in_process;
using wire::strict_library;

std::string library_of(int version) {
  return strict_library("strict-coll" + std::to_string(version));
}

template <class Table>
Table& plugin_table() {
  return *wire::symbol<Table>(wire::loaded(RIFFLE_PLUGIN_PATH),
                              "ncclCollNetPlugin_v" + std::to_string(kVersion<Table>));
}

template <class Function>
struct Second;
template <class First, class Second_>
struct Second<abi::NcclResult (*)(First, Second_)> {
  using Type = Second_;
};
template <class Function>
using SecondOf = typename Second<Function>::Type;

strict::CollNetProbe seen(int version) {
  strict::CollNetProbe p;
  wire::symbol<strict::ReadCollNetProbe>(wire::loaded(library_of(version)),
                                         "strict_collnet_probe_v" + std::to_string(version))(&p);
  return p;
}

// NCCL starts NET first, in the version that it reads of both.
template <class Table>
abi::NcclResult start(Table& t, void** context, std::uint64_t comm_id = 9) {
  nccl_net::use_newest([&]<class Net>() {
    if constexpr (nccl_net::kVersion<Net> == kVersion<Table>) {
      void* net_context = nullptr;
      EXPECT_EQ(wire::init(wire::plugin_table<Net>(), &net_context, comm_id), 0)
          << wire::all_lines();
    }
    return false;
  });
  if constexpr (kVersion<Table> >= 11) return t.init(context, comm_id, wire::logger);
  if constexpr (kVersion<Table> < 11) return t.init(wire::logger);
}

template <class Table>
struct Job {
  Table& t;
  void *context = nullptr, *listener = nullptr, *coll = nullptr, *own = nullptr, *other = nullptr;
  char handle[128] = {};
  char send[64] = "what goes in", recv[64] = {};

  explicit Job(Table& table) : t(table) {
    EXPECT_EQ(start(t, &context), 0) << wire::all_lines();
    if constexpr (kVersion<Table> >= 11) {
      EXPECT_EQ(t.listen(context, 0, handle, &listener), 0);
    }
    if constexpr (kVersion<Table> < 11) {
      EXPECT_EQ(t.listen(0, handle, &listener), 0);
    }
    void* handles[] = {handle};
    EXPECT_EQ(t.connect(handles, 1, 0, listener, &coll), 0);
    EXPECT_EQ(t.regMr(coll, send, sizeof send, abi::kPtrHost, &own), 0);
    EXPECT_EQ(t.regMr(coll, recv, sizeof recv, abi::kPtrHost, &other), 0);
  }
  void finish(void* request, int bytes) {
    int done = 0, size = 0;
    EXPECT_EQ(t.test(request, &done, &size), 0);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(t.test(request, &done, &size), 0);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(size, bytes);
    EXPECT_STREQ(recv, send);
    std::fill_n(recv, sizeof recv, '\0');
  }
  void end() {
    EXPECT_EQ(t.deregMr(coll, own), 0);
    EXPECT_EQ(t.deregMr(coll, other), 0);
    EXPECT_EQ(t.closeColl(coll), 0);
    EXPECT_EQ(t.closeListen(listener), 0);
    if constexpr (kVersion<Table> >= 11) {
      EXPECT_EQ(t.finalize(context), 0);
    }
  }
};

class PassedCollNet : public ::testing::TestWithParam<int> {
 protected:
  const int version = GetParam();  // of the library
  const wire::Settings settings{{"RIFFLE_NET", library_of(version)}};

  // In a process of its own for every version of NCCL's table that may stand on it.
  template <class Use>
  void for_tables(Use&& use) {
    nccl_net::use_newest_collnet([&]<class Table>() {
      if (kVersion<Table> >= version) {
        in_process(settings, [&] { use.template operator()<Table>(); });
      }
      return false;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Library, PassedCollNet, ::testing::Range(5, 13));

TEST_P(PassedCollNet, Operations) {
  for_tables([&]<class Table>() {
    Job<Table> job(plugin_table<Table>());
    int count = 0, supported = -1;
    EXPECT_EQ(job.t.devices(&count), 0);
    EXPECT_EQ(count, 2);
    typename nccl_net::SecondArgument<decltype(Table::getProperties)>::Type properties{};
    EXPECT_EQ(job.t.getProperties(0, &properties), 0);
    EXPECT_EQ(properties.speed, 54321);
    if constexpr (requires { properties.maxCollBytes; }) {
      EXPECT_EQ(properties.maxCollBytes,
                version >= 9 ? std::size_t{1} << 34 : abi::kDefaultMaxCollBytes);
    }
    EXPECT_EQ(job.t.reduceSupport(7, 0, &supported), 0);
    EXPECT_EQ(supported, 1);
    void* request = nullptr;
    EXPECT_EQ(
        job.t.iallreduce(job.coll, job.send, job.recv, 64, 0, 0, job.own, job.other, &request), 0);
    job.finish(request, 64);
    EXPECT_EQ(seen(version).count, 64u);
    if constexpr (requires { job.t.iallgather; }) {
      EXPECT_EQ(job.t.iallgather != nullptr, version >= 8);
      EXPECT_EQ(job.t.ireducescatter != nullptr, version >= 8);
      if (version >= 8) {
        using Part = std::conditional_t<kVersion<Table> == 8, abi::SgeV8, abi::SgeV9>;
        Part to{job.other, job.recv, 48}, from{job.own, job.send, 40};
        EXPECT_EQ(job.t.iallgather(job.coll, job.send, 1, &to, 48, 0, 48, job.own, &request), 0);
        EXPECT_EQ(seen(version).part_bytes, 48u);
        job.finish(request, 48);
        EXPECT_EQ(job.t.ireducescatter(job.coll, 1, &from, job.recv, 40, 0, 40, 7, 0, job.other,
                                       &request),
                  0);
        EXPECT_EQ(seen(version).part_bytes, 40u);
        job.finish(request, 40);
      }
    }
    if constexpr (requires { job.t.makeVDevice; }) {
      EXPECT_EQ(job.t.makeVDevice != nullptr, version >= 9);
      if (version >= 9) {
        std::remove_pointer_t<SecondOf<decltype(job.t.makeVDevice)>> members{};
        members.ndevs = 2;
        members.devs[0] = 1;
        int made = 0;
        EXPECT_EQ(job.t.makeVDevice(&made, &members), 0);
        EXPECT_EQ(made, 41);
        EXPECT_EQ(seen(version).members, 2);
      }
    }
    if constexpr (requires { job.t.regMrDmaBuf; }) {
      EXPECT_EQ(job.t.regMrDmaBuf != nullptr, version >= 6);
      if (version >= 6) {
        void* region = nullptr;
        EXPECT_EQ(job.t.regMrDmaBuf(job.coll, job.send, 64, abi::kPtrCuda, 0, 33, &region), 0);
        EXPECT_EQ(seen(version).dma_buf_fd, 33);
        EXPECT_EQ(job.t.deregMr(job.coll, region), 0);
      }
    }
    job.end();
    const strict::CollNetProbe left = seen(version);
    EXPECT_EQ(left.listeners + left.colls + left.requests, 0);
    EXPECT_EQ(left.finalizes, version >= 11 ? 1 : 0);
    EXPECT_EQ(left.comm_id, version >= 11 ? 9u : 0u);
    EXPECT_EQ(wire::count_lines(2, ""), 0) << wire::all_lines();
  });
}

TEST_P(PassedCollNet, WhatAnOlderTableCannotSayIsAnError) {
  for_tables([&]<class Table>() {
    Job<Table> job(plugin_table<Table>());
    if constexpr (kVersion<Table> >= 9) {
      void* request = nullptr;
      const std::size_t large = std::size_t{1} << 31;
      if (version < 9) {
        EXPECT_EQ(job.t.iallreduce(job.coll, job.send, job.recv, large, 0, 0, job.own, job.other,
                                   &request),
                  abi::kInternalError);
      }
      if (version < 8) {
        void* region = nullptr;
        EXPECT_EQ(job.t.regMr(job.coll, job.send, large, abi::kPtrHost, &region),
                  abi::kInternalError);
      }
      if (version == 8) {
        abi::SgeV9 part{job.other, job.recv, std::size_t{1} << 32}, parts[65] = {};
        EXPECT_EQ(job.t.iallgather(job.coll, job.send, 1, &part, 8, 0, 8, job.own, &request),
                  abi::kInternalError);
        EXPECT_EQ(
            job.t.ireducescatter(job.coll, 65, parts, job.recv, 8, 0, 8, 7, 0, job.other, &request),
            abi::kInternalError);
      }
    }
    if constexpr (kVersion<Table> >= 11) {
      void* none = nullptr;
      EXPECT_NE(job.t.listen(&job, 0, job.handle, &none), 0) << "a context that is none";
    }
    job.end();
  });
}

// A context of each communicator; libraries without contexts start once.
TEST_P(PassedCollNet, SeveralCommunicators) {
  in_process(settings, [&] {
    auto& t = plugin_table<abi::CollNetV12>();
    void *first = nullptr, *second = nullptr;
    EXPECT_EQ(start(t, &first, 1), 0);
    EXPECT_EQ(t.init(&second, 2, wire::logger), 0);
    EXPECT_NE(first, second);
    EXPECT_EQ(seen(version).inits, version >= 11 ? 2 : 1);
    EXPECT_EQ(t.finalize(second), 0);
    EXPECT_EQ(t.finalize(first), 0);
    EXPECT_EQ(seen(version).finalizes, version >= 11 ? 2 : 0);
  });
}

// What init returns in a process with these settings, and what the log says; and the library was
// not started.
void expect_not_passed_on(const wire::Settings& more, int want, const std::string& line) {
  wire::Settings settings = {{"RIFFLE_NET", library_of(12)}};
  settings.insert(more.begin(), more.end());
  in_process(settings, [&] {
    void* context = nullptr;
    auto& t = plugin_table<abi::CollNetV12>();
    EXPECT_EQ(start(t, &context), want) << wire::all_lines();
    EXPECT_EQ(seen(12).inits, 0);
    EXPECT_EQ(t.finalize(context), 0);  // also a null one, as NCCL may
    EXPECT_NE(wire::all_lines().find(line), std::string::npos) << wire::all_lines();
  });
}

TEST(PassedCollNetChoice, NotWhereAllReducesAreRiffles) {
  expect_not_passed_on({{"RIFFLE_COLLNET", "on"}}, abi::kSuccess, "");
  expect_not_passed_on({{"RIFFLE_COLLNET", "tcp"}}, abi::kSuccess, "");
}

TEST(PassedCollNetChoice, NotWhereItIsOff) {
  expect_not_passed_on({{"RIFFLE_COLLNET", "off"}}, abi::kInternalError, "stay with NCCL");
}

// NCCL may connect COLLNET alone, so that NET's refusal would come too late.
TEST(PassedCollNetChoice, NotWhereTheJobIsRefused) {
  expect_not_passed_on({{"RIFFLE_ENCRYPT", "1"}}, abi::kInternalError, "RIFFLE_ENCRYPT=1");
  expect_not_passed_on({{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_COLLNET", "on"}}, abi::kInternalError,
                       "RIFFLE_ENCRYPT=1");
}

TEST(PassedCollNetChoice, NotWithoutATableOrWithHalfOfOne) {
  in_process({{"RIFFLE_NET", strict_library(12)}}, [] {
    void* context = nullptr;
    EXPECT_EQ(start(plugin_table<abi::CollNetV12>(), &context), abi::kInternalError);
  });
  in_process({{"RIFFLE_NET", library_of(12)}, {"STRICT_NET_LACKS", "iallreduce"}}, [] {
    void* context = nullptr;
    EXPECT_EQ(start(plugin_table<abi::CollNetV12>(), &context), abi::kSystemError);
    EXPECT_EQ(wire::count_lines(2, "its table lacks iallreduce"), 1) << wire::all_lines();
    EXPECT_EQ(seen(12).finalizes, 1);
    EXPECT_EQ(context, nullptr);
  });
}

TEST(PassedCollNetChoice, TheNewestThatIsNotNewer) {
  const auto said = [](int version) {
    return "strict-coll-some.so (COLLNET v" + std::to_string(version) + ") is passed on to NCCL";
  };
  const wire::Settings settings = {{"RIFFLE_NET", strict_library("strict-coll-some")}};
  in_process(settings, [&] {
    void* context = nullptr;
    EXPECT_EQ(start(plugin_table<abi::CollNetV12>(), &context), 0);
    EXPECT_EQ(wire::count_lines(3, said(10)), 1) << wire::all_lines();
  });
  in_process(settings, [&] {
    EXPECT_EQ(start(plugin_table<abi::CollNetV9>(), nullptr), 0);
    EXPECT_EQ(wire::count_lines(3, said(8)), 1) << wire::all_lines();
  });
  in_process({{"RIFFLE_NET", library_of(12)}}, [] {
    void* context = nullptr;
    EXPECT_EQ(start(plugin_table<abi::CollNetV12>(), &context), 0);
    EXPECT_EQ(plugin_table<abi::CollNetV10>().init(wire::logger), abi::kInternalError);
  });
}

}  // namespace
}  // namespace riffle::collnet_passed_test
