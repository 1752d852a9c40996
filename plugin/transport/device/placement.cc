#include "plugin/transport/device/placement.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/base/errno_text.h"
#include "plugin/transport/device/machine_reading.h"
#include "plugin/transport/device/numa_memory.h"

namespace riffle::placement {
namespace {

// A CPU set as large as any kernel wants; cpu_set_t ends at 1024.
class Mask {
 public:
  Mask() : words_(kMaxCpus / kBitsPerWord) {}
  cpu_set_t* get() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  std::size_t bytes() const { return words_.size() * sizeof(unsigned long); }
  void add(int cpu) {
    words_[static_cast<std::size_t>(cpu) / kBitsPerWord] |=
        1UL << (static_cast<std::size_t>(cpu) % kBitsPerWord);
  }
  CpuList list() const {
    CpuList cpus;
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      const auto index = static_cast<std::size_t>(cpu);
      if ((words_[index / kBitsPerWord] >> (index % kBitsPerWord) & 1) != 0) cpus.push_back(cpu);
    }
    return cpus;
  }

 private:
  static constexpr std::size_t kBitsPerWord = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

CpuList mask_of(pid_t thread) {
  Mask mask;
  if (::sched_getaffinity(thread, mask.bytes(), mask.get()) != 0) return {};
  return mask.list();
}

// What the devices use, and the machine around it. Never destroyed.
struct Here {
  std::vector<std::string> nics;
  MachineReading machine;
};
std::atomic<const Here*> here{nullptr};

CoreRequest request_of(const Here* h, int threads) {
  return {.allowed = job_mask(),
          .nics = h != nullptr ? h->nics : std::vector<std::string>(),
          .threads = threads};
}

void say_once(const Decision& decision) {
  static std::atomic<bool> was_said{false};
  if (was_said.exchange(true)) return;
  if (!decision.warning.empty()) log_warn(decision.warning);
  if (decision.cpus.empty()) {
    log_info("progress threads run where the job does: {}", decision.why);
  } else {
    log_info("progress threads run on CPUs {}: {}", to_text(decision.cpus), decision.why);
  }
}

}  // namespace

const CpuList& job_mask() {
  static const auto* const mask = new CpuList(mask_of(::getpid()));  // the main thread's
  return *mask;
}

void begin(std::vector<Nic> nics, std::vector<std::string> used) {
  static std::atomic<bool> has_begun{false};
  if (has_begun.exchange(true)) return;
  here.store(new Here{std::move(used), MachineReading(job_mask(), std::move(nics))},
             std::memory_order_release);
  static_cast<void>(std::atexit([] { here.load(std::memory_order_acquire)->machine.wait(); }));
}

std::optional<Decision> decide(const std::string& setting, const CoreRequest& request,
                               const std::function<const Machine*()>& machine) {
  Decision decision;
  if (setting == "none") {
    decision.why = "RIFFLE_CPUS=none";
    return decision;
  }
  if (!setting.empty()) {
    Result<CpuList> cpus = parse_cpu_list(setting);
    if (cpus && !cpus->empty()) {
      decision.cpus = std::move(*cpus);
      decision.is_set = true;
      decision.why = "RIFFLE_CPUS";
      return decision;
    }
    decision.warning = "RIFFLE_CPUS='" + setting +
                       "': " + (cpus ? "it names no CPU" : cpus.status().message()) +
                       ", or none; choosing as if it were not set";
  }
  if (request.allowed.size() < kFewestCores) {  // spares small machines the look around
    decision.why = "it may use " + std::to_string(request.allowed.size()) + " CPUs only";
    return decision;
  }
  const Machine* const found = machine();
  if (found == nullptr) return {};
  if (found->is_flat) {
    decision.why = "the machine counts as flat";
    return decision;
  }
  CoreChoice choice = choose_cores(*found, request);
  decision.cpus = std::move(choice.cpus);
  decision.why = std::move(choice.reason);
  return decision;
}

std::optional<CpuList> cpus_of_thread(int index, const ThreadOptions& options) {
  const Here* const h = here.load(std::memory_order_acquire);
  const std::optional<Decision> decision = decide(options.cpus, request_of(h, options.count), [h] {
    return h != nullptr ? h->machine.get() : nullptr;
  });
  if (!decision) return {};
  say_once(*decision);
  if (!decision->is_set) return decision->cpus;
  return share_of_thread(decision->cpus, index, options.count);
}

void move_this_thread(const CpuList& cpus) {
  if (cpus.empty()) return;
  Mask mask;
  for (const int cpu : cpus) mask.add(cpu);
  if (::sched_setaffinity(0, mask.bytes(), mask.get()) == 0) return;
  log_warn(
      "a progress thread cannot move to CPUs {}: {} (this process may use {}); it "
      "stays where it is; RIFFLE_CPUS chooses others",
      to_text(cpus), errno_text(errno), to_text(job_mask()));
}

void keep_near_nics(void* data, std::size_t bytes) {
  const Here* const h = here.load(std::memory_order_acquire);
  const Machine* const machine = h != nullptr ? h->machine.get() : nullptr;
  if (machine == nullptr) return;
  const std::optional<int> node = choose_memory_node(*machine, request_of(h, 1));
  if (!node) return;
  const Status preferred = prefer_numa_node(*node, data, bytes);
  static std::atomic<bool> was_said{false};
  if (was_said.exchange(true)) return;
  if (preferred) {
    log_info("staging memory lies on NUMA node {}, where the NICs are", *node);
  } else {
    log_warn("{}; it lies where the kernel puts it", preferred.message());
  }
}

}  // namespace riffle::placement
