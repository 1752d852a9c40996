#include "lab/cluster/cpu_share.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace riffle::cluster {
namespace {

constexpr int kPeriodUs = 20'000;
constexpr int kRemovalAttempts = 200, kRemovalPauseUs = 10'000;

Status no_groups(const std::string& what) {
  return system_error("cpu_percent needs control groups for processor time, as root: " + what);
}

Status set_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (file.flush()) return Status::ok();
  return no_groups("cannot write \"" + text + "\" to " + path);
}

struct Mount {
  std::string folder;
  bool v2 = false;
};

bool lists(const std::string& words, const std::string& word, char separator) {
  std::istringstream in(words);
  for (std::string w; std::getline(in, w, separator);) {
    if (w == word) return true;
  }
  return false;
}

// The hierarchy of control groups that has the controller "cpu".
Result<Mount> hierarchy() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device, folder, type, options;
    fields >> device >> folder >> type >> options;
    if (type == "cgroup" && lists(options, "cpu", ',')) return Mount{folder, false};
    std::ifstream file(folder + "/cgroup.controllers");
    std::string controllers;
    if (type == "cgroup2" && std::getline(file, controllers) && lists(controllers, "cpu", ' ')) {
      return Mount{folder, true};
    }
  }
  return no_groups("no mounted hierarchy has the controller \"cpu\"");
}

}  // namespace

Result<CpuShares> CpuShares::plan(const Profile& profile) {
  CpuShares shares;
  if (std::ranges::all_of(profile.cpu_percent, [](int percent) { return percent == 0; })) {
    return shares;
  }
  const auto mount = hierarchy();
  if (!mount) return mount.status();
  static int made = 0;
  shares.v2_ = mount->v2;
  shares.folder_ =
      mount->folder + "/riffle-" + std::to_string(getpid()) + "-" + std::to_string(made++);
  shares.cpu_percent_ = profile.cpu_percent;
  return shares;
}

std::string CpuShares::group_of(std::size_t node) const {
  return folder_ + "-node" + std::to_string(node);
}

std::string CpuShares::procs_file(int node) const {
  const auto n = static_cast<std::size_t>(node);
  const bool has_group = n < cpu_percent_.size() && cpu_percent_[n] != 0;
  return has_group ? group_of(n) + "/cgroup.procs" : "";
}

Status CpuShares::make() const {
  Status status;
  if (v2_ && !folder_.empty()) {
    const std::string root = folder_.substr(0, folder_.rfind('/'));
    status = set_file(root + "/cgroup.subtree_control", "+cpu");
  }
  each_group([&](std::size_t node) {
    if (!status) return;
    const std::string group = group_of(node);
    if (mkdir(group.c_str(), 0755) != 0) {
      status = no_groups("cannot make " + group + ": " + std::strerror(errno));
      return;
    }
    const std::string period = std::to_string(kPeriodUs);
    const std::string quota = std::to_string(kPeriodUs / 100 * cpu_percent_[node]);
    if (v2_) {
      status = set_file(group + "/cpu.max", quota + " " + period);
      return;
    }
    status = set_file(group + "/cpu.cfs_period_us", period);
    if (status) status = set_file(group + "/cpu.cfs_quota_us", quota);
  });
  return status;
}

void CpuShares::remove() const {
  each_group([&](std::size_t node) {
    const std::string group = group_of(node);
    for (int i = 0; i < kRemovalAttempts && rmdir(group.c_str()) != 0 && errno == EBUSY; ++i) {
      std::ifstream members(group + "/cgroup.procs");
      for (pid_t pid = 0; members >> pid;) kill(pid, SIGKILL);
      usleep(kRemovalPauseUs);
    }
  });
}

Status CpuShares::enter(int node) const {
  const std::string file = procs_file(node);
  return file.empty() ? Status::ok() : set_file(file, std::to_string(getpid()));
}

}  // namespace riffle::cluster
