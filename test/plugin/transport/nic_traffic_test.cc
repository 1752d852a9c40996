// What communicators, NET and processes know of each other's traffic on the NICs they share.
#include "plugin/transport/device/nic_traffic.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "test/plugin/transport/link_harness.h"

namespace riffle::nic_traffic_test {
namespace {

// A path for an account, in a folder of its own.
class FreshPath {
 public:
  FreshPath() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~FreshPath() { std::filesystem::remove_all(folder_); }
  FreshPath(const FreshPath&) = delete;
  FreshPath& operator=(const FreshPath&) = delete;
  std::string text() const { return folder_ + "/account"; }

 private:
  std::string folder_ = (std::filesystem::temp_directory_path() / "nics-test-XXXXXX").string();
};

TEST(NicTraffic, OthersAreAllButTheOwnCommunicator) {
  const FreshPath path;
  const auto nics = NicTraffic::at(path.text());
  nics->of_net().out += 100;
  nics->of_mesh(7).out += 20;
  nics->of_mesh(8).in += 3;
  EXPECT_EQ(nics->others(7).out, 100u);
  EXPECT_EQ(nics->others(7).in, 3u);
  EXPECT_EQ(nics->others(8).out, 120u);
  EXPECT_EQ(nics->others(8).in, 0u);
}

TEST(NicTraffic, EverySlotIsSeen) {
  const FreshPath path;
  const auto nics = NicTraffic::at(path.text());
  std::set<const NicTraffic::Slot*> slots = {&nics->of_net()};
  std::uint64_t all = 0;
  for (std::uint64_t c = 0; slots.size() < NicTraffic::kSlots; ++c) {
    slots.insert(&nics->of_mesh(c));
    nics->of_mesh(c).in += c;
    all += c;
    ASSERT_EQ(nics->others(c).in + nics->of_mesh(c).in, all);
  }
}

TEST(NicTraffic, ProcessesShareItAndTheLastOneRemovesIt) {
  const FreshPath fresh;
  const std::string path = fresh.text();
  int made[2], over[2];
  ASSERT_EQ(::pipe(made), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    {
      const auto nics = NicTraffic::at(path);
      nics->of_mesh(1).out += 5;
      (void)!::write(made[1], &byte, 1);
      (void)!::read(over[0], &byte, 1);
    }
    ::_exit(std::filesystem::exists(path) ? 1 : 0);
  }
  ASSERT_EQ(::read(made[0], &byte, 1), 1);
  {
    const auto nics = NicTraffic::at(path);
    EXPECT_EQ(nics->others(2).out, 5u);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  ASSERT_EQ(::write(over[1], &byte, 1), 1);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the last user left the file behind";
  for (const int fd : {made[0], made[1], over[0], over[1]}) ::close(fd);
}

TEST(NicTraffic, WhereItCannotBeSharedTheProcessHasItsOwn) {
  const FreshPath fresh;
  const std::string path = fresh.text();
  std::ofstream(path) << "another's";
  std::filesystem::permissions(path, std::filesystem::perms::all);
  for (const std::string& place : {path, path + "/nowhere"}) {
    const auto nics = NicTraffic::at(place);
    nics->of_net().in += 9;
    EXPECT_EQ(NicTraffic::at(place)->others(1).in, 9u);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 9u);
}

using Links = LinkTest;

TEST_F(Links, ALinkAddsWhatItSendsAndReceives) {
  const FreshPath path;
  const auto nics = NicTraffic::at(path.text());
  start(1, {}, {nics, &nics->of_net()});
  send_frames(1);
  read_frames(0, 1);
  // Counted once the kernel has taken it; the peer may be faster.
  EXPECT_TRUE(eventually([&] { return nics->others(1).out >= large_payload_.size(); }));
  write_frame(numbered(1, 0), "hello");
  ASSERT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(nics->others(1).in, kFrameHeaderBytes + 5);
}

TEST(Meshes, ShowOthersTrafficButNotTheirOwn) {
  const auto nodes = start_mesh(2, {});
  const auto payload = std::vector<std::byte>(1 << 20);
  nodes[0]->send(1, numbered(1, 1 << 20), payload);
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
  const auto others = [&] {
    NicBytes bytes;
    nodes[0]->reactor->run_and_wait([&] { bytes = nodes[0]->mesh->others_on_nics(); });
    return bytes;
  };
  const NicBytes before = others();
  const auto nics = NicTraffic::of(devices(settings().devices)->front().addresses);
  nics->of_net().out += 1 << 20;
  EXPECT_GE(others().out - before.out, 1u << 20);
  EXPECT_GE(nics->others(~std::uint64_t{0}).out, 2u << 20) << "the mesh's own is in it";
}

}  // namespace
}  // namespace riffle::nic_traffic_test
