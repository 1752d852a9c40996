// hwloc in the job: there, not there, no good, too slow; and what a forked child sees of it.
#include "plugin/transport/device/machine_reading.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>

#include "plugin/config/log.h"
#include "plugin/transport/device/placement.h"
#include "test/hwloc_leaks.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::machine_reading_test {
namespace {

constexpr std::uint64_t kLong = 20 * kSecond;  // however busy the machine is

std::mutex lines_mutex;
std::vector<std::string> lines;
void keep_line(int, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(lines_mutex);
  lines.emplace_back(text);
}

void forget_lines() {
  const std::lock_guard lock(lines_mutex);
  lines.clear();
}

std::string fake(const char* fault) { return std::string(RIFFLE_FAKE_HWLOC) + fault + ".so"; }

class MachineReadingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    nic_.name = "eth7";
    forget_lines();
    set_log_level(LogLevel::kInfo);
    set_logger(keep_line);
  }
  void TearDown() override {
    is_over();
    set_logger(nullptr);
  }
  static void is_over() {
    EXPECT_TRUE(eventually([] { return threads_called("riffle-machine") == 0; }, 20'000));
  }
  MachineReading reading(const std::string& library, std::uint64_t patience_ns = kLong) {
    return MachineReading({0, 1}, {nic_}, {.library = library}, patience_ns);
  }
  // The one line that the log has of it.
  static std::string line() {
    is_over();
    const std::lock_guard lock(lines_mutex);
    EXPECT_EQ(lines.size(), 1u);
    return lines.empty() ? "" : lines[0];
  }
  void expect_flat(const std::string& library, const std::string& why) {
    forget_lines();
    const MachineReading r = reading(library);
    r.wait();
    EXPECT_TRUE(r.get()->is_flat);
    EXPECT_EQ(to_text(cpus_of(*r.get())), "0-1");
    ASSERT_EQ(r.get()->nics.size(), 1u);
    EXPECT_EQ(r.get()->nics[0].name, "eth7");
    const std::string said = line();
    EXPECT_NE(said.find("the machine counts as flat: hwloc"), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }

  Nic nic_;
};

TEST_F(MachineReadingTest, Present) {
  const MachineReading r = reading(kHwlocLibrary);
  r.wait();
  const Machine& machine = *r.get();
  EXPECT_FALSE(machine.is_flat);
  EXPECT_TRUE(machine.source.starts_with("hwloc, API 2.")) << machine.source;
  const CpuList& mine = placement::job_mask();
  EXPECT_EQ(intersection(cpus_of(machine), mine), mine);
  EXPECT_FALSE(machine.numa_nodes.empty());
  ASSERT_EQ(machine.nics.size(), 1u);  // sysfs says which there are
  EXPECT_EQ(machine.nics[0].name, "eth7");
  EXPECT_NE(line().find("machine: " + std::to_string(machine.cores.size()) + " cores"),
            std::string::npos);
  EXPECT_EQ(r.get(), &machine);
  // hwloc's own plugins drew them in, where they are installed, and are gone again.
  std::ifstream maps("/proc/self/maps");
  for (std::string at; std::getline(maps, at);) {
    for (const char* library : {"libX11", "libOpenCL", "libXNVCtrl", "/hwloc_"}) {
      EXPECT_EQ(at.find(library), std::string::npos) << at;
    }
  }
}

TEST_F(MachineReadingTest, Absent) {
  expect_flat("/nowhere/libhwloc.so.15", "/nowhere/libhwloc.so.15: cannot open");
}

TEST_F(MachineReadingTest, Broken) {
  expect_flat(fake("INCOMPLETE"), "lacks hwloc_topology_init");
  expect_flat(fake("OTHER_ABI"), "has API 3.0");
  expect_flat(fake("FAILS"), "cannot look at this machine: Function not implemented");
}

TEST_F(MachineReadingTest, TooSlowAndALateResultIsNotUsed) {
  const auto begun = std::chrono::steady_clock::now();
  const auto passed_ms = [&] {
    return (std::chrono::steady_clock::now() - begun) / std::chrono::milliseconds(1);
  };
  const MachineReading r = reading(fake("SLOW"), kMachinePatienceNs);
  EXPECT_EQ(r.get(), nullptr);
  EXPECT_LT(passed_ms(), 250);  // the caller does not wait
  r.wait();
  EXPECT_GE(passed_ms(), 300);
  EXPECT_LT(passed_ms(), 900);
  const Machine* const machine = r.get();
  EXPECT_TRUE(machine->is_flat);
  EXPECT_NE(line().find("hwloc did not tell of it within 300 ms"), std::string::npos);
  EXPECT_GE(passed_ms(), 1000);  // it has come in the meantime
  EXPECT_EQ(r.get(), machine);
  EXPECT_TRUE(machine->is_flat);
}

TEST_F(MachineReadingTest, AForkedChildDoesNotWait) {
  const MachineReading r = reading(fake("SLOW"));
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const auto begun = std::chrono::steady_clock::now();
    r.wait();
    const bool is_quick = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(500);
    _exit(is_quick && r.get()->is_flat ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  r.wait();
  EXPECT_FALSE(r.get()->is_flat);  // the parent's goes on
  const pid_t later = fork();
  if (later == 0) _exit(r.get()->is_flat ? 1 : 0);  // it was known by then
  waitpid(later, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(MachineReadingTest, NothingOfOpenClGlOrGpusIsAskedAndTheEnvironmentIsLeft) {
  std::vector<std::string> before, after;
  for (char** v = environ; *v != nullptr; ++v) before.emplace_back(*v);
  const MachineReading r = reading(fake("WATCHED"));
  r.wait();
  EXPECT_FALSE(r.get()->is_flat);
  for (char** v = environ; *v != nullptr; ++v) after.emplace_back(*v);
  EXPECT_EQ(before, after);
  void* const library = dlopen(fake("WATCHED").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  auto* const switched_off =
      reinterpret_cast<const char* (*)()>(dlsym(library, "fake_hwloc_switched_off"));
  EXPECT_STREQ(switched_off(), "gl opencl cuda nvml rsmi levelzero x86 pci ");
}

TEST_F(MachineReadingTest, AnotherMachineFromTheEnvironmentIsNotTaken) {
  setenv("HWLOC_SYNTHETIC", "numa:4 core:8 pu:2", 1);
  expect_flat(kHwlocLibrary, "another machine than this one");
  unsetenv("HWLOC_SYNTHETIC");
}

}  // namespace
}  // namespace riffle::machine_reading_test
