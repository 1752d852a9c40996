#include "bench/harness/session.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <set>

#include "topology/fabric/fabric_file.h"

namespace riffle::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kStartDeadlineMs = 60000;
constexpr int kEndDeadlineMs = 10000;

// "done <start> <end> <cpu> <wrong>"
std::size_t wrong_in(const std::string& answer) {
  const std::size_t at = answer.rfind(' ');
  return at == std::string::npos ? 0 : std::strtoull(answer.c_str() + at, nullptr, 10);
}

std::string order(const Question& question, int salt) {
  return "op " + std::to_string(question.bytes) + " " +
         std::to_string(static_cast<int>(question.type)) + " " +
         std::to_string(static_cast<int>(question.op)) + " 1 " + std::to_string(salt) + " 0";
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::make(const cluster::Profile& profile, Site site) {
  auto made = TemporaryFolder::make();
  if (!made) return made.status();
  site.folder = made->path();
  site.control = site.folder + "/control";
  auto hub = ControlHub::open(site.control);
  if (!hub) return hub.status();
  std::unique_ptr<Session> session(
      new Session(profile, std::move(made.value()), std::move(hub.value())));
  session->site_ = std::move(site);
  return session;
}

Result<std::unique_ptr<Session>> Session::open_beside(const std::string& plugin) const {
  Site site = site_;
  site.plugin = plugin;
  return make(profile_, std::move(site));
}

Result<std::unique_ptr<Session>> Session::open(const cluster::Profile& profile,
                                               const SessionOptions& options) {
  auto made = make(profile, {.ranks = profile.size(),
                             .plugin = options.plugin,
                             .programs = options.programs,
                             .peer_timeout_s = options.peer_timeout_s});
  if (!made) return made;
  std::unique_ptr<Session> session = std::move(*made);
  const Status allowed = cluster::namespaces_allowed();
  if (!allowed && !options.allow_loopback) return allowed;
  if (!allowed) return session;
  cluster::Profile network = profile;
  network.congestion = options.congestion;
  auto cluster = cluster::Cluster::create(network);
  if (!cluster) return cluster.status();
  session->cluster_ = std::move(cluster.value());
  session->site_.cluster = session->cluster_.get();
  if (profile.shaped() && !options.live_fabric) {
    session->site_.fabric = session->site_.folder + "/fabric.toml";
    std::ofstream file(session->site_.fabric);
    file << to_toml(fabric_of(profile));
    if (!file.flush()) return system_error("cannot write " + session->site_.fabric);
  }
  return session;
}

Session::~Session() { end(); }

Status Session::explain(const Status& status) const {
  std::ifstream log(site_.folder + "/" + peer_ + ".log");
  std::deque<std::string> last;
  for (std::string line; std::getline(log, line);) {
    last.push_back(line);
    if (last.size() > 12) last.pop_front();
  }
  std::string message = peer_ + ": " + status.message();
  for (const std::string& line : last) message += "\n    " + line;
  return {status.code(), message};
}

Status Session::begin(const Peer& peer) {
  end();
  if (!peer.missing.empty()) return invalid_argument(peer.name + ": " + peer.missing);
  peer_ = peer.name;
  title_ = peer.title;
  const char* set_by_caller = std::getenv("RIFFLE_FABRIC");
  const bool is_told = !site_.fabric.empty() || (set_by_caller && *set_by_caller != 0);
  network_ = !peer.network.empty() ? peer.network : is_told ? "file" : "live";
  const auto pid = start(peer, site_, site_.folder + "/" + peer.name + ".log");
  if (!pid) return pid.status();
  supervisor_ = pid.value();
  const Status up = hub_.accept_all(site_.ranks, supervisor_, kStartDeadlineMs);
  return up ? up : explain(up);
}

Result<Row> Session::ask(const Question& question, const std::function<void(int done)>& progress) {
  auto row = measure(hub_, site_, question, progress);
  if (!row) return explain(row.status());
  row->profile = profile_.name;
  row->peer = title_;
  row->variant = peer_;
  row->network = network_;
  row->congestion = congestion();
  return row;
}

Result<Loss> Session::lose(const Question& question, const std::string& kind, bool goes_on) {
  const int victim = profile_.fault.node;
  if (Status s = hub_.tell_all(order(question, 1)); !s) return explain(s);
  if (auto ready = hub_.hear_all(kStartDeadlineMs); !ready) return explain(ready.status());
  if (Status s = hub_.tell_all("go"); !s) return explain(s);
  usleep(static_cast<useconds_t>(profile_.fault.after_ms) * 1000);
  const auto start = Clock::now();
  kill(hub_.pid_of(victim), kind == "kill" ? SIGKILL : SIGSTOP);
  Loss loss;
  loss.kind = kind;
  const int deadline_ms = (site_.peer_timeout_s + 20) * 1000;
  std::vector<int> ran;
  for (int rank = 0; rank < site_.ranks; ++rank) {
    if (rank == victim) continue;
    ++loss.survivors;
    const int left_ms = deadline_ms - static_cast<int>(seconds_since(start) * 1000);
    const auto answer = hub_.hear(rank, std::max(left_ms, 0));
    if (answer && *answer == "ran") {
      ran.push_back(rank);
      loss.last_result_s = seconds_since(start);
    }
    if (!answer || answer->rfind("error ", 0) != 0) continue;
    ++loss.with_error;
    loss.last_error_s = seconds_since(start);
    if (loss.first_message.empty()) loss.first_message = answer->substr(6);
  }
  for (const int rank : ran) {
    if (Status s = hub_.tell(rank, "check"); !s) return explain(s);
    const auto answer = hub_.hear(rank, kStartDeadlineMs);
    if (!answer || answer->rfind("done ", 0) != 0) continue;
    ++loss.with_result;
    loss.wrong += wrong_in(*answer);
  }
  if (!goes_on && loss.with_result == loss.survivors) {
    kill(hub_.pid_of(victim), SIGKILL);
    return invalid_argument("an all-reduce of " + std::to_string(question.bytes) +
                            " bytes had ended before its node was lost, " +
                            std::to_string(profile_.fault.after_ms) +
                            " ms after it began: take larger --sizes");
  }
  if (loss.with_result == loss.survivors) {
    const auto next = go_on(question, loss);
    if (!next) return explain(next.status());
    loss.next_s = *next;
  }
  kill(hub_.pid_of(victim), SIGKILL);  // also a stopped one
  return loss;
}

Result<double> Session::go_on(const Question& question, Loss& loss) {
  std::vector<int> left;
  for (int rank = 0; rank < site_.ranks; ++rank) {
    if (rank != profile_.fault.node) left.push_back(rank);
  }
  double seconds = 0;
  for (const std::string& step : {order(question, 2), std::string("go"), std::string("check")}) {
    const auto start = Clock::now();
    for (const int rank : left) {
      if (const Status s = hub_.tell(rank, step); !s) return s;
    }
    for (const int rank : left) {
      const auto answer = hub_.hear(rank, kStartDeadlineMs);
      if (!answer) return answer.status();
      if (answer->rfind("error ", 0) == 0 || answer->empty()) {
        return remote_error("node " + std::to_string(rank) + " does not go on: " + *answer);
      }
      if (step == "check") loss.wrong += wrong_in(*answer);
    }
    if (step == "go") seconds = seconds_since(start);
  }
  return seconds;
}

std::string Session::congestion() const {
  const bool chosen = site_.cluster && !site_.cluster->profile().congestion.empty();
  return chosen ? site_.cluster->profile().congestion : "system";
}

int Session::count_plan_changes() {
  if (network_ != "live" && network_ != "file") return -1;
  std::set<std::string> plans;
  for (const std::string& line : new_plan_changes()) plans.insert(line.substr(line.find("(plan ")));
  return static_cast<int>(plans.size());
}

std::vector<std::string> Session::new_plan_changes() {
  std::ifstream log(site_.folder + "/" + peer_ + ".log");
  std::vector<std::string> changes;
  std::size_t seen = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find("(plan ") == std::string::npos || line.find("from chunk") == std::string::npos) {
      continue;
    }
    const std::size_t text = line.find("Riffle: ");
    if (++seen <= changes_seen_) continue;
    changes.push_back(text == std::string::npos ? line : line.substr(text + 8));
  }
  changes_seen_ = seen;
  return changes;
}

std::string Session::mode() const {
  std::ifstream log(site_.folder + "/" + peer_ + ".log");
  std::string last;
  for (std::string line; std::getline(log, line);) {
    const std::size_t text = line.find("Riffle: ");
    if (line.find(" from call ") == std::string::npos) continue;
    last = text == std::string::npos ? line : line.substr(text + 8);
  }
  return last;
}

std::string Session::said(const std::string& text) const {
  std::ifstream log(site_.folder + "/" + peer_ + ".log");
  std::string last;
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find(text);
    if (at != std::string::npos) last = line.substr(at);
  }
  return last;
}

void Session::end() {
  changes_seen_ = 0;
  if (supervisor_ == 0) return;
  (void)hub_.tell_all("quit");
  hub_.drop();
  const auto start = Clock::now();
  while (waitpid(supervisor_, nullptr, WNOHANG) == 0) {
    if (seconds_since(start) * 1000 > kEndDeadlineMs) {
      kill(-supervisor_, SIGKILL);  // its process group
      waitpid(supervisor_, nullptr, 0);
      break;
    }
    usleep(2000);
  }
  supervisor_ = 0;
}

}  // namespace riffle::bench
