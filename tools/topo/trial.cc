#include "tools/topo/trial.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "topology/host/machine_read.h"

namespace riffle::tools::topo {

Status try_machine_file(const std::string& path) {
  constexpr unsigned kPatienceSeconds = 30;
  const pid_t child = ::fork();
  if (child < 0) return system_error(std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) ::dup2(null, 2);
    ::alarm(kPatienceSeconds);
    (void)read_machine_xml(path).is_ok();
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error(std::string("waitpid: ") + std::strerror(errno));
  }
  if (WIFEXITED(status)) return Status::ok();
  return invalid_argument(path + " is damaged: hwloc ends with '" + strsignal(WTERMSIG(status)) +
                          "' when it reads it");
}

}  // namespace riffle::tools::topo
