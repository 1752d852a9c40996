#include "plugin/transport/device/placement.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "plugin/config/log.h"
#include "plugin/transport/base/errno_text.h"
#include "plugin/transport/device/device.h"
#include "topology/host/machine_read.h"

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

Decision decide_for_this_process(const TransportOptions& options) {
  CoreRequest request;
  request.allowed = job_mask();
  request.threads = options.threads.count;
  const Result<std::vector<Device>>& found = devices(options.devices);
  for (const Device& device : found ? *found : std::vector<Device>{}) {
    for (const NicAddress& address : device.addresses) request.nics.push_back(address.interface);
  }
  Decision decision = decide(options.threads.cpus, request, [] { return read_machine_sysfs(); });
  if (!decision.warning.empty()) log_warn(decision.warning);
  if (decision.cpus.empty()) {
    log_info("progress threads run where the job does: {}", decision.why);
  } else {
    log_info("progress threads run on CPUs {}: {}", to_text(decision.cpus), decision.why);
  }
  return decision;
}

}  // namespace

const CpuList& job_mask() {
  static const auto* const mask = new CpuList(mask_of(::getpid()));  // the main thread's
  return *mask;
}

Decision decide(const std::string& setting, const CoreRequest& request,
                const std::function<Result<Machine>()>& machine) {
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
  const Result<Machine> found = machine();
  if (!found) {
    decision.why = found.status().message();
    return decision;
  }
  CoreChoice choice = choose_cores(*found, request);
  decision.cpus = std::move(choice.cpus);
  decision.why = std::move(choice.reason);
  return decision;
}

CpuList cpus_of_thread(int index, const TransportOptions& options) {
  static const auto* const decision = new Decision(decide_for_this_process(options));
  if (!decision->is_set) return decision->cpus;
  return share_of_thread(decision->cpus, index, options.threads.count);
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

}  // namespace riffle::placement
