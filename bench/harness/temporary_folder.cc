#include "bench/harness/temporary_folder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace riffle::bench {
namespace {

[[noreturn]] void wait_and_remove(const std::string& path, pid_t owner) {
  setpgid(0, 0);  // not for Ctrl-C
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int signal = 0;
  if (getppid() == owner) sigwait(&end, &signal);
  std::error_code none;
  std::filesystem::remove_all(path, none);
  // Dying workers may still write a log.
  for (int tries = 0; std::filesystem::exists(path, none) && tries < 50; ++tries) {
    usleep(20000);
    std::filesystem::remove_all(path, none);
  }
  _exit(0);
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
  std::string path = (std::filesystem::temp_directory_path() / "riffle-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return system_error("cannot make a folder " + path + ": " + std::strerror(errno));
  }
  const pid_t owner = getpid();
  const pid_t janitor = fork();
  if (janitor == 0) wait_and_remove(path, owner);
  if (janitor < 0) return system_error(std::string("fork: ") + std::strerror(errno));
  return TemporaryFolder(std::move(path), janitor);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::move(other.path_)), janitor_(std::exchange(other.janitor_, 0)) {}

TemporaryFolder::~TemporaryFolder() {
  if (janitor_ == 0) return;
  kill(janitor_, SIGTERM);
  while (waitpid(janitor_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace riffle::bench
