// plugin/telemetry: lines, file name, file, counters.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "plugin/config/file_pattern.h"
#include "plugin/config/log.h"
#include "plugin/telemetry/comm_record.h"
#include "plugin/telemetry/json_line.h"
#include "plugin/telemetry/recorder.h"
#include "topology/plan/planner.h"

namespace riffle::telemetry_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Folder {
 public:
  Folder() : path_(fs::path(::testing::TempDir()) / ("telemetry" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::vector<json> lines_of(const std::string& path) {
  std::vector<json> all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

std::string host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

TEST(JsonLine, NestsAndEscapes) {
  JsonLine line;
  line.add("a", "x\"\\\n\xc3").add("b", -1).add("c", true).open("d", '[');
  line.add("", 1).open("", '{').close('}').open("", '{').add("e", 0.5).close('}').close(']');
  const std::string text = line.take();
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(json::parse(text),
            json::parse(R"({"a": "x\"\\\n?", "b": -1, "c": true, "d": [1, {}, {"e": 0.5}]})"));
}

Result<std::string> record_file(const std::string& pattern) {
  return file_of_process("RIFFLE_RECORD", pattern, "jsonl");
}

TEST(FileOfProcess, ExpandsItsLetters) {
  setenv("RANK", "7", 1);
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(*record_file("/a/%h-%p.%r%%"), "/a/" + host() + "-" + pid + ".7%");
  EXPECT_EQ(*record_file("/a/r"), "/a/r." + host() + "." + pid);
  EXPECT_EQ(*record_file("/a/new/"), "/a/new/riffle." + host() + "." + pid + ".jsonl");
  EXPECT_EQ(*record_file("/tmp"), "/tmp/riffle." + host() + "." + pid + ".jsonl");
  setenv("RANK", "../../x", 1);
  EXPECT_EQ(*record_file("/a/%r"), "/a/0");
  unsetenv("RANK");
  for (const char* bad : {"/a/%x", "/a/%p%"}) {
    const auto path = record_file(bad);
    ASSERT_FALSE(path.is_ok()) << bad;
    EXPECT_NE(path.status().message().find("accepted are %h host"), std::string::npos);
  }
}

TEST(Recorder, WritesBehindTheCaller) {
  const Folder folder;
  auto recorder = *Recorder::open(folder.file("deeper/r.jsonl"), 1 << 20);
  recorder->write("{\"n\":1}\n");
  recorder->flush();
  EXPECT_EQ(lines_of(recorder->path()).size(), 1u);
  recorder->write("{\"n\":2}\n");
  const std::string path = recorder->path();
  recorder.reset();
  EXPECT_EQ(lines_of(path).back()["n"], 2);
}

TEST(Recorder, StartsANewFileWithTheStandingLines) {
  const Folder folder;
  auto recorder = *Recorder::open(folder.file("r"), 1000);
  recorder->write_standing("a", "{\"standing\":\"old\"}\n");
  recorder->write_standing("a", "{\"standing\":\"new\"}\n");
  recorder->write_standing("gone", "{\"standing\":\"gone\"}\n");
  recorder->drop_standing("gone");
  for (int i = 0; i < 10; ++i) {
    recorder->write("{\"n\":" + std::to_string(i) + ",\"fill\":\"" + std::string(300, 'x') +
                    "\"}\n");
    recorder->flush();
  }
  recorder.reset();
  const auto now = lines_of(folder.file("r")), before = lines_of(folder.file("r.1"));
  EXPECT_EQ(now.front()["standing"], "new");
  EXPECT_EQ(before.front()["standing"], "new");
  EXPECT_EQ(now[1]["n"].get<int>(), before.back()["n"].get<int>() + 1);
  EXPECT_EQ(now.back()["n"], 9);
  EXPECT_LE(fs::file_size(folder.file("r")), 1000u);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(folder.file("r")).parent_path()), {}), 2);
}

TEST(Recorder, DropsWhatTheFileDoesNotTakeInTimeAndSaysSo) {
  const Folder folder;
  auto recorder = *Recorder::open(folder.file("r"), 1 << 30);
  const std::string line = "{\"fill\":\"" + std::string(1 << 20, 'x') + "\"}\n";
  for (int i = 0; i < 100; ++i) recorder->write(line);
  recorder->flush();
  recorder.reset();
  std::size_t written = 0, dropped = 0;
  for (const json& l : lines_of(folder.file("r"))) {
    if (l.contains("fill")) ++written;
    if (l.contains("lines")) dropped += l["lines"].get<std::size_t>();
  }
  EXPECT_EQ(written + dropped, 100u);
  EXPECT_GT(dropped, 0u);
}

std::mutex warnings_mutex;
std::vector<std::string> warnings;
void keep_warning(int level, unsigned long, const char*, int, const char* format, ...) {
  constexpr int kWarn = 2;
  if (level != kWarn) return;
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(warnings_mutex);
  warnings.emplace_back(text);
}

class CountingSource : public LineSource {
 public:
  void put_lines(const Put& put) override {
    put("{\"source\":1}\n");
    ++asked;
  }
  std::atomic<int> asked{0};
};

TEST(Recorder, AFullDiskEndsTheFileAndNothingElse) {
  const Folder folder;
  fs::create_symlink("/dev/full", folder.file("r"));
  warnings.clear();
  set_logger(keep_warning);
  auto recorder = *Recorder::open(folder.file("r"), 1000);
  const auto source = std::make_shared<CountingSource>();
  recorder->add_source(source);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    recorder->write_standing("a", "{\"n\":" + std::to_string(i) + "}\n");
    recorder->write("{\"fill\":\"" + std::string(400, 'x') + "\"}\n");
    recorder->flush();
  }
  recorder.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
      << "none is waited for";
  set_logger(nullptr);
  EXPECT_GE(source->asked, 20);
  const std::lock_guard lock(warnings_mutex);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("RIFFLE_RECORD: " + folder.file("r") + ": No space left on device"),
            std::string::npos)
      << warnings[0];
}

class SourceWithoutMemory : public LineSource {
 public:
  void put_lines(const Put&) override { throw std::bad_alloc(); }
};

TEST(Recorder, WhatThrowsOnItsThreadEndsNothing) {
  const Folder folder;
  warnings.clear();
  set_logger(keep_warning);
  auto recorder = *Recorder::open(folder.file("r"), 1 << 20);
  recorder->add_source(std::make_shared<SourceWithoutMemory>());
  recorder->flush();
  recorder->write("{\"n\":1}\n");
  recorder.reset();
  set_logger(nullptr);
  std::ifstream in(folder.file("r"));
  std::string line;
  EXPECT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "{\"n\":1}");
  const std::lock_guard lock(warnings_mutex);
  ASSERT_FALSE(warnings.empty());
  EXPECT_NE(warnings[0].find("a part of the record is lost"), std::string::npos) << warnings[0];
}

TEST(Recorder, RefusesAFileItCannotWrite) {
  const auto recorder = Recorder::open("/proc/no/such/folder/r", 1000);
  ASSERT_FALSE(recorder.is_ok());
  EXPECT_NE(recorder.status().message().find("RIFFLE_RECORD"), std::string::npos);
}

TEST(Recorder, AForkedChildRecordsNothing) {
  const Folder folder;
  auto recorder = *Recorder::open(folder.file("r"), 1 << 20);
  recorder->flush();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the writer sleeps by now
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    recorder->write("{\"child\":1}\n");
    recorder->flush();
    recorder.reset();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  recorder.reset();
  EXPECT_EQ(lines_of(folder.file("r")).size(), 0u);
}

TEST(CommCounters, BucketsHoldTheirTimes) {
  EXPECT_EQ(time_bucket(0), 0);
  for (std::uint64_t us = 1; us < 5'000'000; us += 1 + us / 7) {
    const int b = time_bucket(us);
    EXPECT_LE(bucket_begin_us(b), us);
    EXPECT_LT(us, bucket_begin_us(b + 1)) << us;
  }
  EXPECT_EQ(time_bucket(~0ull), kTimeBuckets - 1);
  EXPECT_EQ(size_class(0), 0);
  EXPECT_EQ(size_class(1 << 20), 20);
  EXPECT_EQ(size_class((1 << 20) + 1), 21);
  EXPECT_EQ(size_class(~0ull), kSizeClasses - 1);
}

TEST(CommCounters, TimeCountsOnceHoweverManyRun) {
  CommCounters counters(4);
  counters.began(1'000'000);
  counters.began(2'000'000);
  EXPECT_EQ(counters.active_us(3'000'000), 2000u);
  counters.ended(4'000'000, 1'000'000, 1000);
  counters.ended(6'000'000, 2'000'000, 1 << 20);
  EXPECT_EQ(counters.active_us(9'000'000), 5000u);
  EXPECT_EQ(counters.classes()[10].count, 1u);
  EXPECT_EQ(counters.bursts(), 1u);
  counters.began(9'000'000);
  EXPECT_EQ(counters.bursts(), 2u);
  EXPECT_EQ(counters.classes()[20].max_us, 4000u);
}

TEST(CommRecord, LinesSayWhatHappened) {
  const Folder folder;
  setenv("SLURM_JOB_ID", "4711", 1);
  const Fabric fabric{{{"h0", 1000, 2000, 0}, {"h1", 1000, 1000, 1}}, {{"r0", 5, 6}, {"r1", 0, 0}}};
  {
    CommRecord record(*Recorder::open(folder.file("r"), 1 << 20), 0xabc, 1, 2);
    record.connected({"h0", "h1"});
    record.planned({.from_chunk = 0,
                    .cause = "connect",
                    .reason = "because",
                    .name = "direct",
                    .digest = 1,
                    .fabric = &fabric,
                    .predicted_us = 1500,
                    .predicted_bytes = 4096});
    record.counters().began(0);
    record.counters().ended(3'000'000, 0, 4096);
    record.counters().last_was(0);
    record.sample(4'000'000, {{.peer = 0, .bytes_out = 10, .bytes_in = 20, .busy_us = 30}});
    record.failed("over");
  }
  unsetenv("SLURM_JOB_ID");
  const auto lines = lines_of(folder.file("r"));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["type"], "process");
  EXPECT_EQ(lines[0]["slurm_job_id"], "4711");
  EXPECT_EQ(lines[1]["hosts"], json::parse(R"(["h0", "h1"])"));
  EXPECT_EQ(lines[2]["trigger"], "connect");
  EXPECT_EQ(lines[2]["predicted_us"], 1500);
  EXPECT_EQ(lines[2]["predicted_bytes"], 4096);
  EXPECT_FALSE(lines[2]["fabric"].contains("nominal"));
  EXPECT_EQ(lines[2]["fabric"]["nodes"][0]["in_kbps"], 2000);
  EXPECT_EQ(lines[2]["fabric"]["racks"][0]["down_kbps"], 6);
  EXPECT_NEAR(lines[2]["bound_us_per_mib"].get<double>() / bound_us(fabric, 1 << 20), 1, 1e-5);
  EXPECT_EQ(lines[3]["active_us"], 3000);
  EXPECT_EQ(lines[3]["bursts"], 1);
  EXPECT_EQ(lines[3]["sizes"][0]["times"], json::parse("[[2048, 1]]"));
  EXPECT_EQ(lines[3]["links"][0]["last"], 1);
  EXPECT_EQ(lines[4]["why"], "over");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["comm"], "0000000000000abc");
    EXPECT_EQ(lines[i]["rank"], 1);
    EXPECT_GT(lines[i]["t"].get<double>(), 1.7e9);
  }
}

}  // namespace
}  // namespace riffle::telemetry_test
