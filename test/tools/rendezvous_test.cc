// Processes of a launch meet on loopback: strangers stay out, the missing are named, no call
// outlives its deadline.
#include "tools/probe/rendezvous.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace riffle::tools::rendezvous_test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Secret kSecret = {7};

struct Door {
  int port = 0;
  Result<Fd> fd = open_door(&port);
  MeetingPoint at(const Secret& secret = kSecret) const { return {{"127.0.0.1"}, port, secret}; }
};

TEST(Rendezvous, RanksComeInAnyOrderAndCarryLines) {
  const Door door;
  ASSERT_TRUE(door.fd) << door.fd.status().message();
  std::vector<std::thread> others;
  for (const int rank : {2, 1}) {
    others.emplace_back([&door, rank] {
      const Result<Fd> road = go_to(door.at(), rank, 10000);
      ASSERT_TRUE(road) << road.status().message();
      const std::string line = kLinePrefix + std::string("I am ") + std::to_string(rank) + "\n";
      EXPECT_EQ(write(road->get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
      char end;
      EXPECT_EQ(read(road->get(), &end, 1), 0);
    });
  }
  {
    Crew crew;
    let_in(*door.fd, kSecret, 3, 10000, crew);
    crew.hear_all(10000, "waiting");
    ASSERT_EQ(crew.members().size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string rank = std::to_string(i + 1);
      EXPECT_EQ(crew.members()[i].name, "rank " + rank);
      ASSERT_EQ(crew.members()[i].lines.size(), 1u) << crew.members()[i].absent;
      EXPECT_EQ(crew.members()[i].lines.front(), "I am " + rank);
    }
  }
  for (std::thread& t : others) t.join();
}

TEST(Rendezvous, WhoDoesNotKnowTheSecretStaysOut) {
  const Door door;
  ASSERT_TRUE(door.fd);
  const auto begin = Clock::now();
  std::thread stranger([&door] {
    const Result<Fd> road = go_to(door.at(Secret{8}), 1, 800);
    ASSERT_FALSE(road);
    EXPECT_NE(road.status().message().find("rank 1 did not reach rank 0"), std::string::npos);
    EXPECT_NE(road.status().message().find("RIFFLE_PROBE_SECRET"), std::string::npos)
        << road.status().message();
  });
  Crew crew;
  let_in(*door.fd, kSecret, 2, 1000, crew);
  stranger.join();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  ASSERT_EQ(crew.members().size(), 1u);
  EXPECT_NE(crew.members()[0].absent.find("did not come within 1 s"), std::string::npos);
  EXPECT_NE(crew.members()[0].absent.find("does not know"), std::string::npos)
      << crew.members()[0].absent;
}

TEST(Rendezvous, NobodyThere) {
  int port = 0;
  {
    const Result<Fd> closed = open_door(&port);
    ASSERT_TRUE(closed);
  }
  const auto begin = Clock::now();
  const Result<Fd> road = go_to({{"127.0.0.1"}, port, kSecret}, 3, 500);
  ASSERT_FALSE(road);
  EXPECT_NE(road.status().message().find("Connection refused"), std::string::npos)
      << road.status().message();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(Rendezvous, APortInUseIsNamed) {
  const Door door;
  ASSERT_TRUE(door.fd);
  int port = door.port;
  const Result<Fd> second = open_door(&port);
  ASSERT_FALSE(second);
  EXPECT_NE(second.status().message().find("port " + std::to_string(door.port)), std::string::npos);
  EXPECT_NE(second.status().message().find("--rendezvous"), std::string::npos);
}

}  // namespace
}  // namespace riffle::tools::rendezvous_test
