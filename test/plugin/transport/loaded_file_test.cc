// Which file an address of this process lies in.
#include "plugin/transport/nccl_net/loaded_file.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

namespace riffle::loaded_file_test {
namespace {

using namespace nccl_net;

int here;

TEST(LoadedFile, OfTheProgram) {
  const LoadedFile file = file_holding(&here);
  EXPECT_EQ(file.path, "/proc/self/exe");
  EXPECT_NE(file.inode, 0u);
  EXPECT_TRUE(is_same_build(file, file));
}

TEST(LoadedFile, OfALibrary) {
  // A function that sanitizers do not replace.
  const LoadedFile libc = file_holding(reinterpret_cast<const void*>(&gnu_get_libc_version));
  EXPECT_NE(libc.path.find("libc"), std::string::npos) << libc.path;
  EXPECT_FALSE(is_same_build(libc, file_holding(&here)));
}

TEST(LoadedFile, OfNone) {
  int on_the_stack = 0;
  const LoadedFile none = file_holding(&on_the_stack);
  EXPECT_TRUE(none.path.empty());
  EXPECT_FALSE(is_same_build(none, none)) << "nothing is known of it";
}

TEST(LoadedFile, CopiesHaveTheSameBuildId) {
  LoadedFile a{"/a", 1, 10, "id"}, b{"/b", 1, 11, "id"};
  EXPECT_TRUE(is_same_build(a, b));
  b.build_id = "other";
  EXPECT_FALSE(is_same_build(a, b));
  b.inode = 10;
  EXPECT_TRUE(is_same_build(a, b));
  b.device = 2;
  EXPECT_FALSE(is_same_build(a, b)) << "inodes count per device";
}

}  // namespace
}  // namespace riffle::loaded_file_test
