// Grouped receives through the NET table: one irecv for several messages, matched by tag, as NCCL
// posts them when several GPUs of a node share a connection. The recorded runs have none
// (traces/README.md).
#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "test/nccl_host/plugin_under_test.h"
#include "test/nccl_host/replay_mirror.h"

namespace riffle::host::grouped_receive_test {
namespace {

class GroupedReceive : public ::testing::Test {
 protected:
  static constexpr std::size_t kSlotBytes = 64 << 10;
  static constexpr int kGroup = 8;

  void SetUp() override {
    RIFFLE_NEEDS_PLUGIN();
    set_plugin_environment();
    auto library = PluginLibrary::load(plugin_path(), {});
    ASSERT_TRUE(library.is_ok()) << library.status().message();
    library_ = *library;
    NetTable& net = library_->net();
    ASSERT_EQ(net.init(4711, &context_), kSuccess);
    int devices = 0;
    ASSERT_EQ(net.devices(&devices), kSuccess);
    ASSERT_EQ(net.properties(0, &properties_), kSuccess);
    if (properties_.max_receives < kGroup) GTEST_SKIP() << "the device does not group receives";
    std::array<std::byte, kHandleBytes> handle{};
    void* listener = nullptr;
    ASSERT_EQ(net.listen(context_, 0, handle.data(), &listener), kSuccess);
    ASSERT_TRUE(eventually([&] {
      if (send_ == nullptr) {
        EXPECT_EQ(net.connect(context_, 0, handle.data(), &send_), kSuccess);
      }
      if (receive_ == nullptr) {
        EXPECT_EQ(net.accept(listener, &receive_), kSuccess);
      }
      return send_ != nullptr && receive_ != nullptr;
    }));
    ASSERT_EQ(net.close_listen(listener), kSuccess);
    ASSERT_TRUE(out_.allocate(kSlotBytes * kGroup) && in_.allocate(kSlotBytes * kGroup));
    ASSERT_EQ(net.register_memory(send_, out_.data(), out_.bytes(), &out_mr_), kSuccess);
    ASSERT_EQ(net.register_memory(receive_, in_.data(), in_.bytes(), &in_mr_), kSuccess);
  }

  void TearDown() override {
    if (library_ == nullptr) return;
    NetTable& net = library_->net();
    if (out_mr_ != nullptr) {
      EXPECT_EQ(net.deregister_memory(send_, out_mr_), kSuccess);
    }
    if (in_mr_ != nullptr) {
      EXPECT_EQ(net.deregister_memory(receive_, in_mr_), kSuccess);
    }
    if (send_ != nullptr) {
      EXPECT_EQ(net.close_send(send_), kSuccess);
    }
    if (receive_ != nullptr) {
      EXPECT_EQ(net.close_recv(receive_), kSuccess);
    }
    EXPECT_EQ(net.finalize(context_), kSuccess);
  }

  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
  }

  // One request for messages with the tags `first_tag` .. `first_tag` + kGroup - 1.
  void* post_group(int first_tag) {
    std::array<void*, kGroup> data, mrs;
    std::array<std::size_t, kGroup> bytes;
    std::array<int, kGroup> tags;
    for (std::size_t i = 0; i < kGroup; ++i) {
      data[i] = in_.data() + i * kSlotBytes;
      mrs[i] = in_mr_;
      bytes[i] = kSlotBytes;
      tags[i] = first_tag + static_cast<int>(i);
    }
    void* request = nullptr;
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(library_->net().irecv(receive_, kGroup, data.data(), bytes.data(), tags.data(),
                                      mrs.data(), &request),
                kSuccess);
      return request != nullptr;
    }));
    return request;
  }

  void* post_send(std::size_t slot, std::size_t bytes, int tag) {
    std::byte* data = out_.data() + slot * kSlotBytes;
    fill_message(data, bytes, tag, 0);
    void* request = nullptr;
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(library_->net().isend(send_, data, bytes, tag, out_mr_, &request), kSuccess);
      return request != nullptr;
    }));
    return request;
  }

  // Polls until done; the sizes beyond those expected must stay as they were.
  void finish(void* request, int* sizes) {
    EXPECT_TRUE(eventually([&] {
      int done = 0;
      EXPECT_EQ(library_->net().test(request, &done, sizes), kSuccess);
      return done != 0;
    }));
  }

  std::shared_ptr<PluginLibrary> library_;
  DeviceProperties properties_;
  void *context_ = nullptr, *send_ = nullptr, *receive_ = nullptr;
  void *out_mr_ = nullptr, *in_mr_ = nullptr;
  MemoryRegion out_, in_;
};

TEST_F(GroupedReceive, MatchesByTagWhateverTheOrder) {
  constexpr std::array<std::size_t, kGroup> kBytes{0, 1, 7, 64, 4096, 4097, 65535, 65536};
  for (int round = 0; round < 20; ++round) {
    const int first_tag = 100 + round * kGroup;
    void* group = post_group(first_tag);
    std::array<void*, kGroup> sends;
    for (std::size_t k = 0; k < kGroup; ++k) {
      const std::size_t i =
          (k * 3 + static_cast<std::size_t>(round)) % kGroup;  // 3 and 8 are coprime
      sends[i] = post_send(i, kBytes[i], first_tag + static_cast<int>(i));
    }
    std::array<int, kGroup + 1> sizes{};
    sizes.back() = -1;
    finish(group, sizes.data());
    EXPECT_EQ(sizes.back(), -1) << "more sizes were written than messages received";
    for (std::size_t i = 0; i < kGroup; ++i) {
      const int tag = first_tag + static_cast<int>(i);
      EXPECT_EQ(sizes[i], static_cast<int>(kBytes[i])) << "tag " << tag;
      EXPECT_TRUE(is_message(in_.data() + i * kSlotBytes, kBytes[i], tag, 0)) << "tag " << tag;
      int size = 0;
      finish(sends[i], &size);
    }
  }
}

TEST_F(GroupedReceive, IsNotDoneBeforeTheLastMessage) {
  void* group = post_group(7);
  std::array<void*, kGroup> sends;
  for (std::size_t i = 0; i + 1 < kGroup; ++i)
    sends[i] = post_send(i, 100, 7 + static_cast<int>(i));
  std::array<int, kGroup> sizes{};
  for (int poll = 0; poll < 200; ++poll) {
    int done = 0;
    ASSERT_EQ(library_->net().test(group, &done, sizes.data()), kSuccess);
    ASSERT_EQ(done, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  sends[kGroup - 1] = post_send(kGroup - 1, 100, 7 + kGroup - 1);
  finish(group, sizes.data());
  for (void* s : sends) {
    int size = 0;
    finish(s, &size);
    EXPECT_EQ(size, 100);
  }
}

}  // namespace
}  // namespace riffle::host::grouped_receive_test
