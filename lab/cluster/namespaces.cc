#include "lab/cluster/namespaces.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <sstream>

namespace riffle::cluster {
namespace {

constexpr int kSetUpDeadlineMs = 60000;

Status failed(const std::string& what) { return system_error(what + ": " + std::strerror(errno)); }

// Messages between the three kinds of processes: one per packet, text.
struct Line {
  int mine = -1, theirs = -1;
  bool open() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return false;
    mine = fds[0];
    theirs = fds[1];
    return true;
  }
};

void say(int fd, const std::string& text) {
  if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) _exit(1);  // the parent is gone
}

// The next message; empty: the other end is gone or silent.
std::string hear(int fd, int deadline_ms) {
  pollfd p{fd, POLLIN, 0};
  if (poll(&p, 1, deadline_ms) <= 0) return "";
  char text[8192];
  const ssize_t n = recv(fd, text, sizeof text, 0);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
}

Status write_file(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failed("open " + path);
  const bool all = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return all ? Status::ok() : failed("write " + path);
}

// Root inside stands for the caller outside.
Status enter_new_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return failed("unshare(CLONE_NEWUSER)");
  prctl(PR_SET_DUMPABLE, 1);  // else our /proc entries belong to root and no process can join
  if (Status s = write_file("/proc/self/setgroups", "deny"); !s) return s;
  if (Status s = write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1"); !s) return s;
  return write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
}

// Into a network namespace of our own; says whether that needed a user namespace.
Result<bool> separate() {
  if (unshare(CLONE_NEWNET) == 0) return false;
  if (Status s = enter_new_user_namespace(); !s) return s;
  if (unshare(CLONE_NEWNET) != 0) return failed("unshare(CLONE_NEWNET)");
  return true;
}

void die_with_parent(pid_t parent, int sig) {
  prctl(PR_SET_PDEATHSIG, sig);
  if (getppid() != parent) _exit(1);
}

template <class F>
Status guarded(F f) {
  try {
    return f();
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

[[noreturn]] void hold(int node, int line, pid_t keeper, const Namespaces::SetUpNode& set_up) {
  die_with_parent(keeper, SIGKILL);
  const std::string name = "node" + std::to_string(node);
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0 || sethostname(name.data(), name.size()) != 0) {
    say(line, name + ": no network and UTS namespace: " + std::strerror(errno));
    _exit(1);
  }
  say(line, "ready");
  if (hear(line, kSetUpDeadlineMs) != "go") _exit(1);
  const Status status = guarded([&] { return set_up(node); });
  say(line, status ? "ready" : name + ": " + status.message());
  while (true) pause();
}

struct Holder {
  pid_t pid;
  int line;
};

Status expect_ready(const Holder& holder) {
  const std::string answer = hear(holder.line, kSetUpDeadlineMs);
  if (answer == "ready") return Status::ok();
  return system_error(answer.empty() ? "a node's process did not answer" : answer);
}

Status build(int nodes, std::vector<Holder>& holders, const Namespaces::SetUpSwitch& set_up_switch,
             const Namespaces::SetUpNode& set_up_node) {
  const pid_t keeper = getpid();
  std::vector<pid_t> pids;
  for (int node = 0; node < nodes; ++node) {
    Line line;
    if (!line.open()) return failed("socketpair");
    const pid_t pid = fork();
    if (pid < 0) return failed("fork");
    if (pid == 0) hold(node, line.theirs, keeper, set_up_node);
    close(line.theirs);
    holders.push_back({pid, line.mine});
    pids.push_back(pid);
  }
  for (const Holder& h : holders) {
    if (Status s = expect_ready(h); !s) return s;
  }
  if (Status s = guarded([&] { return set_up_switch(pids); }); !s) return s;
  for (const Holder& h : holders) say(h.line, "go");
  for (const Holder& h : holders) {
    if (Status s = expect_ready(h); !s) return s;
  }
  return Status::ok();
}

[[noreturn]] void keep(int nodes, int owner_line, pid_t owner,
                       const Namespaces::SetUpSwitch& set_up_switch,
                       const Namespaces::SetUpNode& set_up_node,
                       const Namespaces::CleanUp& clean_up) {
  setpgid(0, 0);  // Ctrl-C is for the owner, who then takes us down in order
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  std::vector<Holder> holders;
  const Result<bool> separated = separate();
  // After separate(): a change of credentials clears the parent-death signal.
  die_with_parent(owner, SIGTERM);
  Status status =
      separated ? build(nodes, holders, set_up_switch, set_up_node) : separated.status();
  std::string answer = status.message();
  if (status) {
    answer = separated.value() ? "ok 1" : "ok 0";
    for (const Holder& h : holders) answer.append(" ").append(std::to_string(h.pid));
  }
  say(owner_line, answer);
  // Until the owner closes the line or dies.
  timespec tick{0, 50'000'000};
  pollfd p{owner_line, POLLIN, 0};
  while (status && poll(&p, 1, 0) == 0 && sigtimedwait(&end, nullptr, &tick) < 0) {
  }
  for (const Holder& h : holders) kill(h.pid, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  clean_up();
  _exit(0);
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<Namespaces>> Namespaces::create(int nodes, const SetUpSwitch& set_up_switch,
                                                       const SetUpNode& set_up_node,
                                                       const CleanUp& clean_up) {
  Line line;
  if (!line.open()) return failed("socketpair");
  const pid_t owner = getpid();
  const pid_t keeper = fork();
  if (keeper < 0) return failed("fork");
  if (keeper == 0) {
    close(line.mine);
    keep(nodes, line.theirs, owner, set_up_switch, set_up_node, clean_up);
  }
  close(line.theirs);
  std::unique_ptr<Namespaces> made(new Namespaces(keeper, line.mine));
  std::istringstream answer(hear(line.mine, 2 * kSetUpDeadlineMs));
  std::string word;
  answer >> word;
  if (word != "ok") {
    return system_error(answer.str().empty() ? "the namespaces' keeper died" : answer.str());
  }
  answer >> made->user_;
  for (pid_t pid; answer >> pid;) made->holders_.push_back(pid);
  return made;
}

Namespaces::~Namespaces() {
  close(socket_);
  kill(keeper_, SIGTERM);
  reap(keeper_);
}

Status Namespaces::enter(int node) const {
  RIFFLE_CHECK(node >= 0 && node < static_cast<int>(holders_.size()), "no such node");
  const std::string base =
      "/proc/" + std::to_string(holders_[static_cast<std::size_t>(node)]) + "/ns/";
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  for (const char* kind : {"user", "net", "uts"}) {
    if (!user_ && std::strcmp(kind, "user") == 0) continue;
    const int fd = open((base + kind).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed("open " + base + kind);
    const int rc = setns(fd, 0);
    close(fd);
    if (rc != 0) return failed("setns " + base + kind);
  }
  prctl(PR_SET_PDEATHSIG, death_signal);  // entering a user namespace clears it
  return Status::ok();
}

Status namespaces_allowed() {
  const pid_t pid = fork();
  if (pid < 0) return failed("fork");
  if (pid == 0) _exit(separate() && unshare(CLONE_NEWUTS) == 0 ? 0 : 1);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::ok();
  return system_error(
      "this kernel or container does not let us make network namespaces; run as root, or allow "
      "user "
      "namespaces (sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=1024; in a "
      "container: --cap-add SYS_ADMIN --security-opt seccomp=unconfined)");
}

}  // namespace riffle::cluster
