#include "plugin/collective/base/agreement.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "plugin/collective/base/live_file.h"
#include "plugin/config/log.h"
#include "topology/base/printed.h"

namespace riffle::agreement {
namespace {

std::string hex(std::uint64_t value) { return printed("%016" PRIx64, value); }

// File names carry a hash of the key (FNV-1a) as keys are free text; the file has the key itself.
std::string prefix_of(const std::string& key) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hex(hash) + ".";
}

std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0)
    return "process " + std::to_string(::getpid());
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

std::map<std::string, std::string> parse(const std::string& knobs) {
  std::map<std::string, std::string> values;
  std::istringstream lines(knobs);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return values;
}

std::string shown(const std::map<std::string, std::string>& knobs, const std::string& name) {
  const auto found = knobs.find(name);
  return found == knobs.end() ? "(unknown there)" : "'" + found->second + "'";
}

}  // namespace

class Publication {
 public:
  explicit Publication(std::unique_ptr<LiveFile> file) : file_(std::move(file)) {}

 private:
  std::unique_ptr<LiveFile> file_;
};

std::string default_directory() { return "/dev/shm/riffle-" + std::to_string(::geteuid()); }

std::string job_key(std::uint64_t comm_id) {
  if (comm_id != 0) return "communicator " + hex(comm_id);
  // Sets of variables that name one run of one job, from the most to the least telling.
  static constexpr std::array<std::array<const char*, 2>, 5> kSources = {{
      {"SLURM_JOB_ID", "SLURM_STEP_ID"},
      {"PMIX_NAMESPACE", nullptr},
      {"OMPI_MCA_ess_base_jobid", nullptr},
      {"TORCHELASTIC_RUN_ID", nullptr},
      {"MASTER_ADDR", "MASTER_PORT"},
  }};
  for (const auto& names : kSources) {
    std::string key;
    for (const char* name : names) {
      const char* value = name == nullptr ? nullptr : std::getenv(name);
      if (value != nullptr && *value != '\0') key += std::string(name) + "=" + value + " ";
    }
    if (!key.empty()) return key;
  }
  return "session " + std::to_string(::getsid(0));
}

std::shared_ptr<Publication> publish(const std::string& key, const std::string& knobs,
                                     const std::string& directory) {
  static auto* mutex = new std::mutex;  // never destroyed, as publications end with the process
  static auto* published = new std::map<std::string, std::weak_ptr<Publication>>;
  static std::atomic<bool> warned = false;
  const std::lock_guard lock(*mutex);
  // A forked child has to publish for itself.
  const std::string name = std::to_string(::getpid()) + " " + directory + "/" + key;
  std::erase_if(*published, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Publication>& known = (*published)[name];
  if (auto publication = known.lock()) return publication;
  auto file = LiveFile::create(directory, prefix_of(key), key + "\n" + own_name() + "\n" + knobs);
  if (!file) {
    if (!warned.exchange(true)) {
      log_warn("{}; the knobs of this node's processes are not compared, see that they are equal",
               file.status().message());
    }
    return nullptr;
  }
  auto publication = std::make_shared<Publication>(std::move(*file));
  known = publication;
  return publication;
}

Status compare_knobs(const std::string& who, const std::string& theirs, const std::string& ours) {
  const auto their_values = parse(theirs);
  const auto our_values = parse(ours);
  auto all = our_values;
  all.insert(their_values.begin(), their_values.end());
  for (const auto& [name, value] : all) {
    const std::string there = shown(their_values, name);
    const std::string here = shown(our_values, name);
    if (there != here) {
      return invalid_argument(name + " is " + there + " in " + who + " but " + here +
                              " here: set it alike on all ranks");
    }
  }
  return Status::ok();
}

Status check_local(const std::string& key, const std::string& knobs, const std::string& directory) {
  for (const std::string& content : read_live_files(directory, prefix_of(key))) {
    std::istringstream lines(content);
    std::string their_key, who;
    std::getline(lines, their_key);
    std::getline(lines, who);
    if (their_key != key) continue;
    const std::string theirs(std::istreambuf_iterator<char>(lines), {});
    if (Status status = compare_knobs(who, theirs, knobs); !status) return status;
  }
  return Status::ok();
}

}  // namespace riffle::agreement
