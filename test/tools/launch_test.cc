// Where a process of a launch stands, from what launchers put into the environment.
#include "tools/probe/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace riffle::tools::launch_test {
namespace {

Result<std::optional<Launch>> find(std::map<std::string, std::string> variables,
                                   const std::string& rendezvous = "") {
  return find_launch(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      rendezvous);
}

const std::map<std::string, std::string> kSlurm = {{"SLURM_PROCID", "2"},
                                                   {"SLURM_STEP_NUM_TASKS", "4"},
                                                   {"SLURM_JOB_ID", "77"},
                                                   {"SLURM_STEP_ID", "0"},
                                                   {"SLURM_STEP_NODELIST", "rack1-n[07-09,12]"}};

TEST(Launch, AloneWithoutALauncher) {
  const auto alone = find({});
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->has_value());
  // A batch script is one process, whatever its job has room for.
  const auto batch = find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  ASSERT_TRUE(batch);
  EXPECT_FALSE(batch->has_value());
}

TEST(Launch, SlurmTellsWhereTaskZeroIs) {
  const auto launch = find(kSlurm);
  ASSERT_TRUE(launch && launch->has_value());
  EXPECT_EQ((*launch)->launcher, "Slurm");
  EXPECT_EQ((*launch)->rank, 2);
  EXPECT_EQ((*launch)->size, 4);
  EXPECT_EQ((*launch)->meeting.hosts, std::vector<std::string>{"rack1-n07"});
  // All tasks of a step meet at one port with one secret; another step's do not know it.
  auto other = kSlurm;
  other["SLURM_PROCID"] = "0";
  const auto same = find(other);
  EXPECT_EQ((*same)->meeting.port, (*launch)->meeting.port);
  EXPECT_EQ((*same)->meeting.secret, (*launch)->meeting.secret);
  other["SLURM_STEP_ID"] = "1";
  EXPECT_NE((*find(other))->meeting.secret, (*launch)->meeting.secret);
  other["RIFFLE_PROBE_SECRET"] = "s";
  const auto told = find(other);
  EXPECT_NE((*told)->meeting.secret, (*find(kSlurm))->meeting.secret);
  // The step's own number of tasks counts.
  other["SLURM_STEP_NUM_TASKS"] = "3";
  EXPECT_EQ((*find(other))->size, 3);
}

TEST(Launch, TheInnermostLauncherCounts) {
  auto variables = kSlurm;
  variables["OMPI_COMM_WORLD_RANK"] = "1";
  variables["OMPI_COMM_WORLD_SIZE"] = "8";
  EXPECT_EQ((*find(variables))->launcher, "Open MPI");
  EXPECT_EQ((*find(variables))->size, 8);
  const auto torch = find({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h0"}});
  EXPECT_EQ((*torch)->meeting.hosts, std::vector<std::string>{"h0"});
  const auto hydra = find({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_TRUE((*hydra)->meeting.hosts.empty());  // nobody says where
}

TEST(Launch, TheUserSaysWhere) {
  const auto launch = find(kSlurm, "[fd00::1]:4711");
  ASSERT_TRUE(launch);
  EXPECT_EQ((*launch)->meeting.hosts, std::vector<std::string>{"fd00::1"});
  EXPECT_EQ((*launch)->meeting.port, 4711);
  for (const char* bad : {"host", "host:", ":1", "host:0", "host:65536", "host:1x", "[]:1"}) {
    const auto wrong = find(kSlurm, bad);
    EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(Launch, AbsurdNumbersAreNamed) {
  for (const auto& [rank, size] :
       {std::pair{"4", "4"}, std::pair{"-1", "4"}, std::pair{"0", "0"}, std::pair{"0", "1025"},
        std::pair{"x", "4"}, std::pair{"0", "4x"}, std::pair{"0", "99999999999"}}) {
    const auto launch = find({{"PMI_RANK", rank}, {"PMI_SIZE", size}});
    ASSERT_EQ(launch.status().code(), Code::kInvalidArgument) << rank << " of " << size;
    EXPECT_NE(launch.status().message().find("PMI_"), std::string::npos);
    EXPECT_NE(launch.status().message().find("accepted are"), std::string::npos);
  }
  auto variables = kSlurm;
  variables["SLURM_STEP_NODELIST"] = "n[1-";
  EXPECT_NE(find(variables).status().message().find("n[1-"), std::string::npos);
}

TEST(Launch, AMeetingPointAsOneWord) {
  MeetingPoint meeting{{"10.0.0.1", "fd00::1%eth0"}, 4711, {1, 2, 3}};
  const auto back = meeting_from_word(to_word(meeting));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->hosts, meeting.hosts);
  EXPECT_EQ(back->port, 4711);
  EXPECT_EQ(back->secret, meeting.secret);
  for (const char* bad : {"", "00/1/h", "zz", "00000000000000000000000000000000/0/h",
                          "00000000000000000000000000000000/1"}) {
    EXPECT_FALSE(meeting_from_word(bad)) << bad;
  }
}

}  // namespace
}  // namespace riffle::tools::launch_test
