// NET: what NCCL relies on, over loopback within one process. Peers that die: peer_loss_test.cc.
#include "plugin/net/net_service.h"

#include <netinet/in.h>

#include <cstring>
#include <random>

#include "plugin/config/config.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::net::net_test {
namespace {

Result<Listener*> listen(int device, std::uint64_t comm_id, Handle* handle) {
  return net::listen(settings(), device, comm_id, handle);
}
Result<SendConnection*> connect(int device, Handle* handle) {
  return net::connect(settings(), options_from(config()).net, device, handle);
}

// A connected pair, and waiting for requests with a deadline.
struct Pair {
  Listener* listener = nullptr;
  SendConnection* sender = nullptr;
  RecvConnection* receiver = nullptr;

  Pair() {
    Handle handle;
    auto l = listen(0, 42, &handle);
    EXPECT_TRUE(l) << l.status().message();
    listener = *l;
    EXPECT_TRUE(eventually([&] {
      if (sender == nullptr) {
        auto s = connect(0, &handle);
        EXPECT_TRUE(s) << s.status().message();
        sender = *s;
      }
      if (receiver == nullptr) {
        auto r = accept(listener);
        EXPECT_TRUE(r) << r.status().message();
        receiver = *r;
      }
      return sender != nullptr && receiver != nullptr;
    }));
  }
  ~Pair() {
    if (sender != nullptr) close(sender);
    if (receiver != nullptr) close(receiver);
    close(listener);
  }
  Request* send(const void* data, std::size_t size, int tag = 0) {
    auto r = isend(sender, data, size, tag);
    EXPECT_TRUE(r) << r.status().message();
    return *r;
  }
  Request* recv(void* data, std::size_t size, int tag = 0) {
    return recv_group({data}, {size}, {tag});
  }
  Request* recv_group(std::vector<void*> data, std::vector<std::size_t> sizes,
                      std::vector<int> tags) {
    auto r = irecv(receiver, data, sizes, tags);
    EXPECT_TRUE(r) << r.status().message();
    return *r;
  }
};

// The sizes of a completed request; empty with a test failure if it does not complete.
std::vector<int> wait(Request* request, std::size_t messages = 1) {
  std::vector<int> sizes(messages, -1);
  const bool done = eventually([&] {
    auto r = test(request, sizes.data());
    EXPECT_TRUE(r) << r.status().message();
    return !r || *r;
  });
  EXPECT_TRUE(done);
  return sizes;
}

std::string wait_for_error(Request* request, int limit_ms = 5000) {
  std::string message;
  EXPECT_TRUE(eventually(
      [&] {
        auto r = test(request, nullptr);
        if (!r) message = r.status().message();
        return !message.empty();
      },
      limit_ms));
  return message;
}

std::vector<std::uint32_t> random_words(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> words(count);
  for (auto& w : words) w = random();
  return words;
}

TEST(Net, MessagesOfAllSizesArriveInPlaceAndInOrder) {
  Pair pair;
  for (const std::size_t words : {0, 1, 3, 1000, 1024, 33'333, 1 << 20, 3'000'017}) {
    const auto data = random_words(words, static_cast<std::uint32_t>(words));
    std::vector<std::uint32_t> room(words + 1, 77);
    Request* const r = pair.recv(room.data(), 4 * words);
    Request* const s = pair.send(data.data(), 4 * words);
    EXPECT_EQ(wait(s), std::vector<int>{static_cast<int>(4 * words)});
    EXPECT_EQ(wait(r), std::vector<int>{static_cast<int>(4 * words)});
    EXPECT_TRUE(std::equal(data.begin(), data.end(), room.begin()));
    EXPECT_EQ(room.back(), 77u);
  }
}

TEST(Net, ASmallerMessageSaysItsSize) {
  Pair pair;
  std::vector<char> room(1000, 'x');
  Request* const a = pair.recv(room.data(), 1000);
  Request* const b = pair.recv(room.data() + 500, 500);
  EXPECT_EQ(wait(pair.send("hello", 5)), std::vector<int>{5});
  EXPECT_EQ(wait(pair.send(nullptr, 0)), std::vector<int>{0});
  EXPECT_EQ(wait(a), std::vector<int>{5});
  EXPECT_EQ(wait(b), std::vector<int>{0});
  EXPECT_EQ(std::string(room.data(), 6), "hellox");
}

TEST(Net, ALargerMessageIsAnErrorOnBothSidesNamingBothSizes) {
  Pair pair;
  std::vector<char> room(3000);
  Request* const r = pair.recv(room.data(), 1000);
  Request* const s = pair.send(room.data(), 3000);
  for (Request* const request : {s, r}) {
    const std::string message = wait_for_error(request);
    EXPECT_NE(message.find("3000 bytes"), std::string::npos) << message;
    EXPECT_NE(message.find("1000 bytes"), std::string::npos) << message;
  }
  EXPECT_FALSE(isend(pair.sender, room.data(), 1, 0));  // final
}

TEST(Net, GroupedReceivesMatchByTagInOrderOfPosting) {
  Pair pair;
  std::array<std::array<int, 2>, kMaxGroupedRecvs> room{};
  std::vector<void*> data;
  std::vector<std::size_t> sizes;
  const std::vector<int> tags = {7, 3, 7, 9, 3, 7, 1, 9};
  for (auto& r : room) {
    data.push_back(r.data());
    sizes.push_back(sizeof r);
  }
  // Sends first, in an order of their own: they wait for their receives.
  const std::vector<std::pair<int, int>> sends = {{9, 900}, {1, 100}, {7, 700}, {3, 300},
                                                  {9, 901}, {7, 701}, {7, 702}, {3, 301}};
  std::vector<Request*> requests;
  for (const auto& [tag, value] : sends) requests.push_back(pair.send(&value, sizeof value, tag));
  Request* const group = pair.recv_group(data, sizes, tags);
  EXPECT_EQ(wait(group, 8), std::vector<int>(8, 4));
  for (Request* r : requests) EXPECT_EQ(wait(r), std::vector<int>{4});
  const std::vector<int> expected = {700, 300, 701, 900, 301, 702, 100, 901};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(room[i][0], expected[i]) << i;
}

TEST(Net, ThirtyTwoRequestsAtOnceThenNull) {
  Pair pair;
  char byte = 'b';
  std::vector<char> room(kMaxRequests);
  std::vector<Request*> sends, recvs;
  for (int i = 0; i < kMaxRequests; ++i) sends.push_back(pair.send(&byte, 1));
  EXPECT_EQ(pair.send(&byte, 1), nullptr);
  for (std::size_t i = 0; i < kMaxRequests; ++i) recvs.push_back(pair.recv(&room[i], 1));
  EXPECT_EQ(wait(sends[0]), std::vector<int>{1});
  for (std::size_t i = 1; i < kMaxRequests; ++i) wait(sends[i]);
  for (Request* r : recvs) EXPECT_EQ(wait(r), std::vector<int>{1});
  EXPECT_EQ(room, std::vector<char>(kMaxRequests, 'b'));
}

TEST(Net, AnOldReceiveOfAnotherTagHoldsUpTheOthersOnlyWhenAnnouncementsRunOut) {
  Pair pair;
  int late = 0, value = 5;
  Request* const old = pair.recv(&late, 4, 99);
  std::array<int, 8> room{};
  std::vector<void*> data;
  for (int& r : room) data.push_back(&r);
  std::vector<Request*> groups, sends;
  const auto exchange = [&] {
    groups.push_back(pair.recv_group(data, std::vector<std::size_t>(8, 4), std::vector<int>(8, 1)));
    for (int i = 0; i < 8; ++i) sends.push_back(pair.send(&value, 4, 1));
  };
  const auto finish = [&] {
    for (Request* g : std::exchange(groups, {})) EXPECT_EQ(wait(g, 8), std::vector<int>(8, 4));
    for (Request* s : std::exchange(sends, {})) wait(s);
  };
  for (int round = 0; round < 31; ++round) {
    exchange();
    finish();
  }
  exchange();  // its last message is the 257th since the old receive: no number is free for it
  EXPECT_FALSE(eventually([&] { return *test(groups[0], nullptr); }, 100));
  wait(pair.send(&value, 4, 99));
  EXPECT_EQ(wait(old), std::vector<int>{4});
  EXPECT_EQ(late, 5);
  finish();
}

TEST(Net, EightSlotsAsNcclKeepsThem) {
  Pair pair;
  constexpr std::size_t kSlots = 8, kWords = 100'000, kMessages = 200;
  std::vector<std::vector<std::uint32_t>> out, in(kSlots, std::vector<std::uint32_t>(kWords));
  for (std::size_t i = 0; i < kSlots; ++i) {
    out.push_back(random_words(kWords, static_cast<std::uint32_t>(i)));
  }
  std::vector<Request*> sends(kSlots), recvs(kSlots);
  for (std::size_t m = 0; m < kMessages + kSlots; ++m) {
    const std::size_t slot = m % kSlots;
    if (m >= kSlots) {
      EXPECT_EQ(wait(sends[slot]), std::vector<int>{4 * kWords});
      EXPECT_EQ(wait(recvs[slot]), std::vector<int>{4 * kWords});
      EXPECT_EQ(in[slot], out[slot]);
      in[slot].assign(kWords, 0);
    }
    if (m < kMessages) {
      recvs[slot] = pair.recv(in[slot].data(), 4 * kWords);
      sends[slot] = pair.send(out[slot].data(), 4 * kWords);
    }
  }
}

TEST(Net, CloseAfterTheLastSendDeliversIt) {
  for (int round = 0; round < 20; ++round) {
    Pair pair;
    const auto data = random_words(500'000, 1);
    std::vector<std::uint32_t> room(data.size());
    Request* const r = pair.recv(room.data(), 4 * room.size());
    wait(pair.send(data.data(), 4 * data.size()));
    close(std::exchange(pair.sender, nullptr));
    EXPECT_EQ(wait(r), std::vector<int>{static_cast<int>(4 * room.size())});
    EXPECT_EQ(room, data);
    // A receive that comes too late can never complete, and says so at once or when tested.
    void* const place = room.data();
    const std::size_t size = 4;
    const int tag = 0;
    const auto late = irecv(pair.receiver, {&place, 1}, {&size, 1}, {&tag, 1});
    const std::string why = late ? wait_for_error(*late) : late.status().message();
    EXPECT_NE(why.find("closed the connection"), std::string::npos) << why;
  }
}

TEST(Net, CloseWithTrafficInFlightTouchesNoMemoryAfterwards) {
  const auto data = random_words(1'000'000, 1);
  for (int round = 0; round < 20; ++round) {
    Pair pair;
    std::vector<std::uint32_t> room(data.size());
    Request* const r = pair.recv(room.data(), 4 * room.size());
    Request* const s = pair.send(data.data(), 4 * data.size());
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    if (round % 2 == 0) {
      close(std::exchange(pair.receiver, nullptr));
      std::vector<std::uint32_t> snapshot = room;
      (void)test(s, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(room, snapshot);
    } else {
      close(std::exchange(pair.sender, nullptr));
      EXPECT_TRUE(eventually([&] {  // complete or failed, but not for ever running
        auto done = test(r, nullptr);
        return !done || *done;
      }));
    }
  }
}

TEST(Net, TheFenceStopsTransfersInThatMemoryOnly) {
  Pair pair;
  std::vector<std::uint32_t> used(1000), other(1000);
  Request* const r = pair.recv(used.data(), 4000);
  fence(pair.receiver, other.data(), 4000);
  EXPECT_TRUE(test(r, nullptr));  // lives on
  fence(pair.receiver, used.data() + 10, 4);
  EXPECT_NE(wait_for_error(r).find("deregistered"), std::string::npos);
}

TEST(Net, AListenerThatNeverAcceptedLeavesNothing) {
  { Pair warm_up; }
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    Handle handle;
    Listener* const listener = *listen(0, 0, &handle);
    SendConnection* sender = nullptr;
    if (i % 2) {
      ASSERT_TRUE(eventually([&] {
        sender = *connect(0, &handle);
        return sender != nullptr;
      }));
    }
    close(listener);
    if (sender != nullptr) close(sender);
  }
  EXPECT_TRUE(
      eventually([&] { return reactor_threads() == 0 && open_descriptors() == before; }, 7000))
      << reactor_threads() << " threads, " << open_descriptors() << " descriptors, before "
      << before;
}

// NCCL aborts while it connects: it asks once and never again.
TEST(Net, AConnectThatNobodyAsksForAgainIsDropped) {
  { Pair warm_up; }
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
  const std::size_t before = open_descriptors();
  ::setenv("RIFFLE_CONNECT_TIMEOUT", "1", 1);
  reload_config();
  Listener* listener = nullptr;
  while (true) {
    Handle handle;
    listener = *listen(0, 0, &handle);
    SendConnection* const at_once = *connect(0, &handle);
    if (at_once == nullptr) break;
    close(at_once);  // connected within the first call: nothing to abandon
    close(listener);
  }
  EXPECT_GT(open_descriptors(), before);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // its streams have connected
  close(listener);
  EXPECT_TRUE(
      eventually([&] { return reactor_threads() == 0 && open_descriptors() == before; }, 8000))
      << reactor_threads() << " threads, " << open_descriptors() << " descriptors, before "
      << before;
  ::setenv("RIFFLE_CONNECT_TIMEOUT", "5", 1);
  reload_config();
}

TEST(Net, ForeignHandlesAndWrongDevicesAreRefused) {
  Handle garbage;
  garbage.bytes.fill(0x5a);
  std::fill_n(garbage.bytes.end() - 8, 8, 0);
  EXPECT_NE(connect(0, &garbage).status().message().find("NCCL_NET_PLUGIN"), std::string::npos);
  Handle handle;
  EXPECT_NE(listen(5, 0, &handle).status().message().find("device 5"), std::string::npos);
}

// Three nodes of a ring, and the NCCL of the one in the middle uses its own sockets: the node that
// sends to it has its handle, the node that should receive from it hears nothing.
TEST(Net, ANodeOnAnotherNetworkIsAnErrorThatSaysSo) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = 4711;
  address.sin_addr.s_addr = htonl(0xc0000207);  // 192.0.2.7
  Handle of_nccl;
  std::memcpy(of_nccl.bytes.data(), &address, sizeof address);
  const Status sending = connect(0, &of_nccl).status();
  EXPECT_EQ(sending.code(), Code::kRemote);
  EXPECT_NE(sending.message().find("192.0.2.7 uses NCCL's own transport"), std::string::npos)
      << sending.message();

  ::setenv("RIFFLE_CONNECT_TIMEOUT", "1", 1);
  reload_config();
  Handle handle;
  Listener* const listener = *listen(0, 0, &handle);
  ::setenv("RIFFLE_CONNECT_TIMEOUT", "5", 1);
  reload_config();
  Status receiving;
  EXPECT_TRUE(eventually([&] {
    const auto accepted = accept(listener);
    if (!accepted) receiving = accepted.status();
    return !receiving;
  }));
  EXPECT_EQ(receiving.code(), Code::kTimeout);
  EXPECT_NE(receiving.message().find("another network than Riffle"), std::string::npos)
      << receiving.message();
  close(listener);
}

TEST(Net, TwoHundredPairsLeaveNothingBehind) {
  { Pair warm_up; }
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    Pair pair;
    int value = i, got = -1;
    Request* const r = pair.recv(&got, 4);
    wait(pair.send(&value, 4));
    wait(r);
    EXPECT_EQ(got, i);
  }
  EXPECT_TRUE(
      eventually([&] { return reactor_threads() == 0 && open_descriptors() == before; }, 7000))
      << reactor_threads() << " threads, " << open_descriptors() << " descriptors, before "
      << before;
}

}  // namespace
}  // namespace riffle::net::net_test
