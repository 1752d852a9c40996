// Which library RIFFLE_NET comes to at init, what is refused with which words, and what COLLNET and
// the tuner do beside it.
#include <unistd.h>

#include <filesystem>

#include "plugin/abi/collnet.h"
#include "plugin/abi/tuner.h"
#include "test/wire/rig.h"

// What dlerror() of a thread would say, of threads that still run when a process of a test ends.
// LeakSanitizer asks for it by this name.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:_dlerror_run\n";
}

namespace riffle::wire_loading_test {
namespace {

namespace fs = std::filesystem;
using wire::all_lines;
using wire::count_lines;
using wire::in_process;
using wire::init;
using wire::plugin_table;
using wire::Settings;
using wire::strict_library;

using Net = abi::NetV12;

// init of NET succeeds, and says which library it is.
void takes(const Settings& settings, const std::string& path, const std::string& version) {
  in_process(settings, [&] {
    void* context = nullptr;
    ASSERT_EQ(init(plugin_table<Net>(), &context), 0) << all_lines();
    EXPECT_EQ(count_lines(3, path + " (" + version + ") carries NCCL's NET v12"), 1) << all_lines();
    EXPECT_EQ(wire::finalize(plugin_table<Net>(), context), 0);
    EXPECT_EQ(count_lines(2, ""), 0) << all_lines();
  });
}

// init of NET fails with a warning that has these words; NCCL then takes its next network.
void refuses(const Settings& settings, const std::vector<std::string>& words) {
  in_process(settings, [&] {
    void* context = &context;
    Net& net = plugin_table<Net>();
    EXPECT_NE(init(net, &context), 0);
    EXPECT_EQ(context, nullptr) << "2.28 may free what is left behind";
    EXPECT_EQ(net.finalize(nullptr), 0);
    for (const std::string& word : words) EXPECT_EQ(count_lines(2, word), 1) << all_lines();
    int count = 0;
    EXPECT_EQ(net.devices(&count), abi::kInvalidArgument);
  });
}

// NCCL 2.29 and 2.30 hand the context to their own RMA plugin, which reads and writes it there.
TEST(WireLoading, TheContextBeginsWithTheTrafficClass) {
  in_process({{"RIFFLE_NET", strict_library(12)}}, [&] {
    void* context = nullptr;
    ASSERT_EQ(init(plugin_table<Net>(), &context, 7, 106), 0) << all_lines();
    auto* const config = static_cast<abi::NetCommConfig*>(context);
    EXPECT_EQ(config->trafficClass, 106);
    config->trafficClass = 0;
    EXPECT_EQ(wire::finalize(plugin_table<Net>(), context), 0);
    EXPECT_EQ(count_lines(2, ""), 0) << all_lines();
  });
}

TEST(WireLoading, APath) { takes({{"RIFFLE_NET", strict_library(12)}}, strict_library(12), "v12"); }

TEST(WireLoading, ABareNameInTheLoadersPath) {
  takes({{"RIFFLE_NET", "strict8"}, {"LD_LIBRARY_PATH", STRICT_LIBRARIES}}, strict_library(8),
        "v8");
}

TEST(WireLoading, AFileNameInTheLoadersPath) {
  takes({{"RIFFLE_NET", "libnccl-net-strict8.so"}, {"LD_LIBRARY_PATH", STRICT_LIBRARIES}},
        strict_library(8), "v8");
}

TEST(WireLoading, TheNextOfNcclsList) {
  takes({{"RIFFLE_NET", "next"},
         {"NCCL_NET_PLUGIN", "other,riffle,strict9,strict8"},
         {"LD_LIBRARY_PATH", STRICT_LIBRARIES}},
        strict_library(9), "v9");
}

TEST(WireLoading, TheNewestTableThatBothKnow) {
  takes({{"RIFFLE_NET", strict_library("strict-some")}}, strict_library("strict-some"), "v11");
  in_process({{"RIFFLE_NET", strict_library("strict-some")}}, [&] {
    void* context = nullptr;
    ASSERT_EQ(init(plugin_table<abi::NetV10>(), &context), 0) << all_lines();
    EXPECT_EQ(count_lines(3, "(v9) carries NCCL's NET v10"), 1) << all_lines();
    ASSERT_NE(init(plugin_table<abi::NetV6>(), &context), 0);
    EXPECT_EQ(count_lines(2, "(v7, v9, v11) cannot serve NCCL's NET v6"), 1) << all_lines();
  });
}

TEST(WireLoading, RefusesWhatIsNoLibrary) {
  refuses({{"RIFFLE_NET", "tpc"}},
          {"RIFFLE_NET=tpc: no such library: tpc: cannot open", "libnccl-net-tpc.so: cannot open",
           "accepted: auto, tcp, next, ofi, the name or path"});
  refuses({{"RIFFLE_NET", "/nope/libx.so"}}, {"RIFFLE_NET=/nope/libx.so: no such library"});
  refuses({{"RIFFLE_NET", std::string(STRICT_LIBRARIES) + "/libnccl-net-empty-net.so"}},
          {"the library has none of ncclNetPlugin_v5 to v12"});
  refuses({{"RIFFLE_NET", "next"}, {"NCCL_NET_PLUGIN", "riffle"}},
          {"NCCL_NET_PLUGIN=riffle names no library after riffle"});
}

TEST(WireLoading, RefusesRiffleItself) {
  refuses({{"RIFFLE_NET", RIFFLE_PLUGIN_PATH}}, {"is Riffle itself"});
  // The process that the last body runs in gets there by way of these lines, too.
  const fs::path folder = fs::path(STRICT_LIBRARIES) / "riffle_itself";
  fs::remove_all(folder);
  fs::create_directory(folder);
  const fs::path link = folder / "libnccl-net-link.so", copy = folder / "libnccl-net-copy.so";
  fs::create_symlink(RIFFLE_PLUGIN_PATH, link);
  fs::copy_file(RIFFLE_PLUGIN_PATH, copy);
  refuses({{"RIFFLE_NET", link.string()}}, {"is Riffle itself"});
  refuses({{"RIFFLE_NET", copy.string()}}, {copy.string() + " is Riffle itself"});
  fs::remove_all(folder);
}

TEST(WireLoading, RefusesALibraryThatCannotServe) {
  const std::string library = strict_library(12);
  for (const char* const function : {"irecv", "finalize", "closeSend"}) {
    refuses({{"RIFFLE_NET", library}, {"STRICT_NET_LACKS", function}},
            {std::string("(v12): its table lacks ") + function});
  }
  refuses({{"RIFFLE_NET", library}, {"STRICT_NET_LACKS", "init"}}, {"its table lacks init"});
  refuses({{"RIFFLE_NET", library}, {"STRICT_NET_DEVICES", "0"}}, {"(v12): it has no device"});
  refuses({{"RIFFLE_NET", library}, {"STRICT_NET_INIT", "2"}}, {"(v12): its init returned 2"});
}

TEST(WireLoading, LeavesNullWhatTheLibraryLeavesNull) {
  for (const char* const function :
       {"regMrDmaBuf", "getDeviceMr", "irecvConsumed", "makeVDevice", "setNetAttr", "iflush"}) {
    in_process({{"RIFFLE_NET", strict_library(11)}, {"STRICT_NET_LACKS", function}}, [&] {
      void* context = nullptr;
      Net& net = plugin_table<Net>();
      ASSERT_EQ(init(net, &context), 0) << all_lines();
      const std::string lacks = function;
      EXPECT_EQ(net.regMrDmaBuf == nullptr, lacks == "regMrDmaBuf");
      EXPECT_EQ(net.getDeviceMr == nullptr, lacks == "getDeviceMr");
      EXPECT_EQ(net.irecvConsumed == nullptr, lacks == "irecvConsumed");
      EXPECT_EQ(net.makeVDevice == nullptr, lacks == "makeVDevice");
      EXPECT_EQ(net.setNetAttr == nullptr, lacks == "setNetAttr");
      EXPECT_EQ(net.iflush == nullptr, lacks == "iflush");
      EXPECT_EQ(net.finalize(context), 0);
    });
  }
}

// -- COLLNET, tuner

abi::CollNetV12& collnet() {
  return *wire::symbol<abi::CollNetV12>(wire::loaded(RIFFLE_PLUGIN_PATH), "ncclCollNetPlugin_v12");
}

TEST(WireLoading, CollectivesStayWithNccl) {
  in_process({{"RIFFLE_NET", strict_library(11)}}, [&] {
    void *net_context = nullptr, *context = &context, *tuner_context = &context;
    ASSERT_EQ(init(plugin_table<Net>(), &net_context), 0) << all_lines();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(collnet().init(&context, 7, wire::logger), abi::kInternalError);
      EXPECT_EQ(context, nullptr);
    }
    auto& tuner =
        *wire::symbol<abi::TunerV5>(wire::loaded(RIFFLE_PLUGIN_PATH), "ncclTunerPlugin_v5");
    EXPECT_EQ(tuner.init(&tuner_context, 7, 16, 4, wire::logger, nullptr, nullptr), 0);
    EXPECT_EQ(tuner_context, nullptr) << "no opinion";
    EXPECT_EQ(count_lines(3, "all-reduces stay with NCCL over that library; RIFFLE_COLLNET=on"), 1)
        << all_lines();
    EXPECT_EQ(count_lines(2, ""), 0) << all_lines();
    EXPECT_EQ(wire::finalize(plugin_table<Net>(), net_context), 0);
  });
}

void expect_the_librarys_devices(const std::string& riffle_collnet) {
  const Settings settings = {{"RIFFLE_NET", strict_library(11)},
                             {"RIFFLE_COLLNET", riffle_collnet},
                             {"RIFFLE_SOCKET_IFNAME", "lo"}};
  in_process(settings, [&] {
    void *net_context = nullptr, *context = nullptr, *listener = nullptr;
    int count = 0;
    abi::NetPropsV12 p{};
    ASSERT_EQ(collnet().init(&context, 7, wire::logger), 0) << all_lines();
    EXPECT_EQ(collnet().devices(&count), abi::kInvalidArgument) << "before NET";
    ASSERT_EQ(init(plugin_table<Net>(), &net_context), 0) << all_lines();
    ASSERT_EQ(collnet().devices(&count), 0);
    EXPECT_EQ(count, 2);
    ASSERT_EQ(collnet().getProperties(1, &p), 0);
    EXPECT_STREQ(p.name, "strict1");
    EXPECT_EQ(p.speed, 12345);
    EXPECT_EQ(p.ptrSupport, abi::kPtrHost) << "Riffle's collectives move host memory";
    EXPECT_EQ(p.netDeviceType, abi::kDeviceHost);
    EXPECT_EQ(p.maxCollBytes, abi::kDefaultMaxCollBytes);
    EXPECT_EQ(collnet().getProperties(2, &p), abi::kInvalidArgument);
    char handle[128] = {};
    ASSERT_EQ(collnet().listen(context, 1, handle, &listener), 0) << all_lines();
    // Group plans over the library have a context of their own.
    const int contexts = riffle_collnet == "on" ? 2 : 1;
    EXPECT_EQ(wire::probe(strict_library(11)).contexts, contexts);
    EXPECT_EQ(collnet().closeListen(listener), 0);
    EXPECT_EQ(wire::probe(strict_library(11)).contexts, 1);
    EXPECT_EQ(collnet().finalize(context), 0);
    EXPECT_EQ(wire::finalize(plugin_table<Net>(), net_context), 0);
  });
}

TEST(WireLoading, CollnetOverItShowsTheLibrarysDevices) { expect_the_librarys_devices("on"); }

TEST(WireLoading, CollnetBesideItShowsTheLibrarysDevices) { expect_the_librarys_devices("tcp"); }

}  // namespace
}  // namespace riffle::wire_loading_test
