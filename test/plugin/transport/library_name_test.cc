// NCCL's rules for names of NET plugins, and what RIFFLE_NET=next comes to.
#include "plugin/transport/nccl_net/library_name.h"

#include <gtest/gtest.h>

namespace riffle::library_name_test {
namespace {

using namespace nccl_net;
using Files = std::vector<std::string>;

TEST(LibraryName, WhichValuesMeanALibrary) {
  for (const char* const own : {"", "auto", "tcp"}) EXPECT_FALSE(names_library(own)) << own;
  for (const char* const other : {"ofi", "next", "/x.so", "Auto"}) {
    EXPECT_TRUE(names_library(other)) << other;
  }
}

// openPluginLib of NCCL 2.30.
TEST(LibraryName, FilesThatAreOpened) {
  EXPECT_EQ(files_of_name("ofi"), Files({"ofi", "libnccl-net-ofi.so"}));
  EXPECT_EQ(files_of_name("libx.so"), Files({"libx.so"}));
  EXPECT_EQ(files_of_name("libx"), Files({"libx", "libnccl-net-libx.so"}));
  EXPECT_EQ(files_of_name("x.so"), Files({"x.so", "libnccl-net-x.so.so"}));
  EXPECT_EQ(files_of_name("./x"), Files({"./x"}));
  EXPECT_EQ(files_of_name("/a/libx.so"), Files({"/a/libx.so"}));
}

class Next : public ::testing::Test {
 protected:
  std::string after(const std::string& list,
                    const std::string& own = "/opt/libnccl-net-riffle.so") {
    const auto name = library_name({.name = "next", .plugin_list = list}, own);
    return name ? *name : "error: " + name.status().message();
  }
};

TEST_F(Next, FollowsRiffleInTheList) {
  EXPECT_EQ(after("riffle,ofi"), "ofi");
  EXPECT_EQ(after("a,riffle,,b,c"), "b") << "empty entries do not count";
  EXPECT_EQ(after("libnccl-net-riffle.so,/x/liby.so"), "/x/liby.so");
  EXPECT_EQ(after("/elsewhere/libnccl-net-riffle.so,ofi"), "ofi");
  EXPECT_EQ(after("mine,ofi", "/opt/libnccl-net-mine.so"), "ofi") << "under another name";
  EXPECT_EQ(after("riffle,ofi", "/opt/libnccl-tuner-riffle.so"), "ofi") << "opened as the tuner";
}

TEST_F(Next, SaysWhatTheListLacks) {
  EXPECT_EQ(after("").find("error: RIFFLE_NET=next: NCCL_NET_PLUGIN= does not name riffle"), 0u);
  EXPECT_EQ(after("ofi").find("error: RIFFLE_NET=next: NCCL_NET_PLUGIN=ofi does not name"), 0u);
  EXPECT_EQ(after("ofi,riffle").find("error: RIFFLE_NET=next: NCCL_NET_PLUGIN=ofi,riffle names no"),
            0u);
}

TEST(LibraryName, OtherValuesAreTheNameItself) {
  EXPECT_EQ(*library_name({.name = "ofi", .plugin_list = "riffle,x"}, "/libnccl-net-riffle.so"),
            "ofi");
}

}  // namespace
}  // namespace riffle::library_name_test
