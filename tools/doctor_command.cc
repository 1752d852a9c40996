// `riffle doctor`: would NCCL find, load and use Riffle in this environment?
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "plugin/version.h"
#include "tools/command.h"
#include "tools/doctor/agreement.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/hosts.h"
#include "tools/gathering_options.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

using nlohmann::ordered_json;

struct Choice {
  DoctorQuestion question;
  Gathering gathering;
  std::string hostfile;
  bool is_json = false, only_fixes = false, is_peer = false;
};

void print(const ordered_json& found) {
  std::printf("%s\n", found.dump(1, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

ordered_json json_of(const Verdicts& verdicts) {
  ordered_json all = ordered_json::array();
  for (const Verdicts::Verdict& v : verdicts.all()) {
    const char* kind = v.kind == Verdicts::Kind::kGood   ? "ok"
                       : v.kind == Verdicts::Kind::kNote ? "note"
                                                         : "problem";
    all.push_back({{"kind", kind}, {"text", v.text}, {"remedy", v.remedy}});
  }
  return all;
}

int show(const Diagnosis& found, const Choice& choice) {
  const Verdicts& verdicts = found.verdicts;
  const std::string nccl =
      found.nccl.empty() ? "release unknown (--nccl): checked for the newest" : found.nccl;
  if (choice.only_fixes) {
    std::fputs(verdicts.fixes().c_str(), stdout);
  } else if (choice.is_json) {
    print({{"schema", "riffle-doctor-1"},
           {"version", kVersion},
           {"nccl", nccl},
           {"problems", verdicts.problems()},
           {"verdicts", json_of(verdicts)}});
  } else {
    std::printf("riffle %s\nNCCL: %s\n%s", kVersion, nccl.c_str(), verdicts.text().c_str());
  }
  return verdicts.problems() != 0 ? kFailed : 0;
}

int show(const HostsFinding& found, const Choice& choice) {
  if (choice.is_json) {
    ordered_json hosts = ordered_json::array();
    for (const HostReport& r : found.reports) {
      hosts.push_back({{"host", r.host},
                       {"version", r.version},
                       {"build", r.build},
                       {"nccl", r.nccl},
                       {"problems", r.problems.size()}});
    }
    print({{"schema", "riffle-doctor-hosts-1"},
           {"problems", found.verdicts.problems()},
           {"hosts", hosts},
           {"verdicts", json_of(found.verdicts)}});
  } else {
    std::printf("%s%s", table_of(found.reports).c_str(), found.verdicts.text().c_str());
  }
  return found.verdicts.problems() != 0 ? kFailed : 0;
}

// One host a line, as ssh knows it; what follows it there (slots=8) and # comments do not count.
Status read_hosts(const std::string& path, std::vector<std::string>& hosts) {
  std::ifstream in(path);
  if (!in) return invalid_argument("--hostfile " + path + " cannot be read");
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    hosts.push_back(line.substr(begin, line.find_first_of(" \t\r#", begin) - begin));
  }
  return Status::ok();
}

// The variables of a job here, but for those that are one host's own.
bool is_carried(const std::string& name) {
  static const std::set<std::string> of_one_host = {"RIFFLE_NODE_NAME", "RIFFLE_RACK",
                                                    "RIFFLE_PROBE_SECRET", "NCCL_HOSTID"};
  return name == "LD_LIBRARY_PATH" || ((name.starts_with("RIFFLE_") || name.starts_with("NCCL_")) &&
                                       !of_one_host.contains(name));
}

int run(Choice& choice) {
  signal(SIGPIPE, SIG_IGN);
  if (!choice.hostfile.empty()) {
    if (const Status s = read_hosts(choice.hostfile, choice.gathering.hosts); !s) return report(s);
    if (choice.gathering.hosts.empty()) {
      return report(invalid_argument("--hostfile " + choice.hostfile + " names no host"));
    }
  }
  Crew crew;
  Gathered gathered;
  if (!choice.is_peer && !choice.only_fixes) {
    PeerCommand peer = {{"doctor", "--peer"}, is_carried};
    if (!choice.question.release.empty()) {
      peer.words.insert(peer.words.end(), {"--nccl", choice.question.release});
    }
    if (choice.question.has_loop) peer.words.emplace_back("--loop");
    Result<Gathered> came = gather(choice.gathering, peer, crew);
    if (!came) return report(came.status());
    gathered = std::move(*came);
  }
  using Role = Gathered::Role;
  if (gathered.role == Role::kOverSsh || gathered.role == Role::kRankZero) {
    return show(ask_hosts(crew, choice.gathering.timeout_ms(), gathered.role == Role::kRankZero),
                choice);
  }
  choice.question.beside = plugin_place();
  const auto found = diagnose(choice.question);
  if (!found) return report(found.status());
  if (choice.is_peer) return serve_doctor(*found, STDIN_FILENO, STDOUT_FILENO);
  if (gathered.role == Role::kPeer) {
    return serve_doctor(*found, gathered.road.get(), gathered.road.get());
  }
  return show(*found, choice);
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto choice = std::make_shared<Choice>();
  CLI::App* sub = app.add_subcommand("doctor", "Would NCCL find, load and use Riffle here?");
  sub->add_option("--nccl", choice->question.release,
                  "NCCL release; by default that of libnccl.so.2 if there is one");
  sub->add_flag("--loop", choice->question.has_loop,
                "Also run a whole all-reduce on the machine, over loopback and without a GPU");
  auto* hosts = sub->add_option("--hosts", choice->gathering.hosts,
                                "Look at these hosts over ssh, and at what differs between them")
                    ->delimiter(',');
  auto* file = sub->add_option("--hostfile", choice->hostfile,
                               "The same; a host per line, what follows it is ignored")
                   ->excludes(hosts);
  add_gathering_options(sub, &choice->gathering);
  auto* json = sub->add_flag("--json", choice->is_json,
                             "JSON, schema riffle-doctor-1 or, of hosts, "
                             "riffle-doctor-hosts-1");
  sub->add_flag("--fix", choice->only_fixes, "Only the lines of sh that set things right here")
      ->excludes(json)
      ->excludes(hosts)
      ->excludes(file);
  sub->add_flag("--peer", choice->is_peer, "What runs on the hosts")->group("");
  sub->footer(
      "Run it in the job's environment. NCCL's own files of settings count, too. On several hosts\n"
      "(--hosts, --hostfile, or started there by srun, mpirun or torchrun) it also says whether\n"
      "versions, builds and settings agree, and whether all pairs connect.\n"
      "Exit code 0: no problem; 1: problems; 2: wrong usage.\n"
      "Examples: srun riffle doctor --nccl 2.27.5\n"
      "          riffle doctor --hosts node0,node1,node2\n"
      "          eval \"$(riffle doctor --fix)\"");
  sub->callback([choice, &exit_code] { exit_code = run(*choice); });
}

}  // namespace riffle::tools
