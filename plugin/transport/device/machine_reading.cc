#include "plugin/transport/device/machine_reading.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/log.h"

namespace riffle {
namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

Result<Machine> read_guarded(std::vector<Nic> nics, const HwlocChoice& choice) {
  try {
    return read_machine_hwloc(std::move(nics), choice);
  } catch (const std::exception& e) {
    return internal_error(std::string("hwloc: ") + e.what());
  }
}

}  // namespace

struct MachineReading::State {
  enum class Phase { kReading, kRead, kFlat };

  // Phases change once, so that one line is logged and no reader sees two machines. No lock, which
  // a fork could leave held for ever.
  bool become(Phase next) {
    Phase expected = Phase::kReading;
    return phase.compare_exchange_strong(expected, next, std::memory_order_acq_rel);
  }
  void be_flat(const std::string& why) {
    if (become(Phase::kFlat)) log_info("the machine counts as flat: {}", why);
  }
  void be_late() {
    if (!become(Phase::kFlat)) return;
    log_warn("the machine counts as flat: hwloc did not tell of it within {} ms",
             patience_ns / 1'000'000);
  }
  bool is_late() const { return now_ns() - begun_ns > patience_ns; }

  void run(std::vector<Nic> nics, const HwlocChoice& choice) {
    Result<Machine> machine = read_guarded(std::move(nics), choice);
    if (!machine) return be_flat(machine.status().message());
    if (is_late()) return be_late();
    seen = std::move(*machine);
    if (!become(Phase::kRead)) return;
    log_info("machine: {} cores, {} NUMA nodes, {} GPUs, by {} in {} ms", seen.cores.size(),
             seen.numa_nodes.size(), seen.gpus.size(), seen.source,
             (now_ns() - begun_ns) / 1'000'000);
  }

  const pid_t process = ::getpid();
  const std::uint64_t begun_ns = now_ns();
  std::uint64_t patience_ns = 0;
  Machine flat;
  Machine seen;  // the thread's until the phase is kRead
  std::atomic<Phase> phase{Phase::kReading};
};

MachineReading::MachineReading(const CpuList& cpus, std::vector<Nic> nics,
                               const HwlocChoice& choice, std::uint64_t patience_ns)
    : state_(std::make_shared<State>()) {
  state_->patience_ns = patience_ns;
  state_->flat = flat_machine(cpus, nics);
  // Signals are the application's business.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread([state = state_, nics = std::move(nics), choice]() mutable {
      catching([&] { state->run(std::move(nics), choice); },
               [&state](const Status& why) {
                 if (state->become(State::Phase::kFlat)) {
                   log_caught("the machine counts as flat", why);
                 }
               });
    });
    ::pthread_setname_np(thread.native_handle(), "riffle-machine");
    thread.detach();
  } catch (const std::exception& e) {
    state_->be_flat(std::string("no thread to read it: ") + e.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

const Machine* MachineReading::get() const {
  using Phase = State::Phase;
  State& s = *state_;
  if (s.phase.load(std::memory_order_acquire) == Phase::kReading) {
    if (::getpid() != s.process) return &s.flat;
    if (!s.is_late()) return nullptr;
    s.be_late();
  }
  return s.phase.load(std::memory_order_acquire) == Phase::kRead ? &s.seen : &s.flat;
}

void MachineReading::wait() const {
  while (get() == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace riffle
