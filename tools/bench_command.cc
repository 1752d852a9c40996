// `riffle bench`: riffle beside other libraries on an emulated cluster.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/harness/contention.h"
#include "bench/harness/path_speed.h"
#include "bench/harness/report.h"
#include "bench/harness/session.h"
#include "bench/sparse/compare.h"
#include "plugin/policy/sync_mode.h"
#include "tools/command.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

using bench::Peer;
using bench::Question;
using bench::Row;
using bench::Session;

struct Options {
  std::string profile;
  std::vector<std::string> peers;
  std::vector<std::string> sizes = {"16M"};
  std::string type = "float", op = "sum", fabric = "file";
  int iters = 5, warmup = 1;
  int peer_timeout_s = 0;  // 0: 60, and 3 where a fault is measured
  std::string json, plugin, record, on_loss;
  std::string sync = "exact";
  std::string sparse = "off";
  bool is_sparse() const { return sparse != "off"; }
  bool is_relaxed() const { return sync != "exact" || is_sparse(); }
  std::string mode() const { return is_sparse() ? "--sparse " + sparse : "--sync " + sync; }
  bool loopback = false;
  int nodes = 0;  // 0: as the profile says
  std::vector<std::string> sparse_peers;
  double density = 0.01;
  int teams = 0;  // 0: of racks, else the least
  std::string gradients;
  bool has_iters = false;
  std::vector<int> phases = {10, 40, 40};
  bench::ContentionOptions contention() const { return {phases[0], phases[1], phases[2]}; }
};

constexpr int kRelaxedWarmup = 14;
constexpr int kSparseIters = 20;

Result<std::size_t> parse_size(const std::string& text, std::size_t element) {
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const int shift = unit == "" ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (used == 0 || text[0] == '-' || shift < 0 || value == 0 || value > (8ULL << 30) >> shift ||
      (value << shift) % element != 0) {
    return invalid_argument("--sizes " + text +
                            ": accepted are 1 to 8G bytes, with K, M or G, in " +
                            "whole elements of " + std::to_string(element) + " bytes");
  }
  return static_cast<std::size_t>(value << shift);
}

Result<std::vector<Question>> questions(const Options& options) {
  Question question;
  bool known_type = false, known_op = false;
  std::string types, ops;
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    types += std::string(t ? ", " : "") + name_of(type);
    if (options.type == name_of(type)) {
      question.type = type;
      known_type = true;
    }
  }
  for (int o = 0; o < kReduceOps; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    ops += std::string(o ? ", " : "") + name_of(op);
    if (options.op == name_of(op)) {
      question.op = static_cast<host::Op>(op);
      known_op = true;
    }
  }
  if (!known_type) return invalid_argument("--dtype " + options.type + ": accepted are " + types);
  if (!known_op) return invalid_argument("--redop " + options.op + ": accepted are " + ops);
  if (question.op == host::Op::kProd && size_of(question.type) < 4) {
    return invalid_argument("--redop prod needs a type of 4 or 8 bytes to be checked exactly");
  }
  question.iters = options.iters;
  question.warmup = options.warmup;
  if (options.is_sparse() && options.sync != "exact") {
    return invalid_argument("--sparse and --sync: one of the two");
  }
  if (options.is_sparse() && !sparse_wish(options.sparse).wrong.empty()) {
    return invalid_argument("--sparse " + options.sparse + ": " +
                            sparse_wish(options.sparse).wrong);
  }
  if (options.is_relaxed()) {
    if (question.type != DataType::kFloat32 || question.op != host::Op::kSum) {
      return invalid_argument(options.mode() + " takes float sums");
    }
    // The first steps teach riffle the calls, are exact, and let the nodes agree.
    if (question.warmup == Options().warmup) question.warmup = kRelaxedWarmup;
  }
  std::vector<Question> all;
  for (const std::string& size : options.sizes) {
    const auto bytes = parse_size(size, size_of(question.type));
    if (!bytes) return bytes.status();
    question.bytes = bytes.value();
    if (options.is_relaxed() && question.bytes < 1 << 20) {
      return invalid_argument(options.mode() + " takes --sizes from 1M up");
    }
    all.push_back(question);
  }
  return all;
}

// Shown on a terminal only; the table itself goes to stdout.
class Progress {
 public:
  void show(const std::string& text) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  }

 private:
  bool shown_ = isatty(2);
};

struct Findings {
  std::vector<Row> rows;
  std::vector<bench::SparseRow> sparse;
  bool failed = false;
};

// Riffle itself, where --sync or --sparse asks for it.
bool relaxed_mode_of(const Peer& peer, const Options& options) {
  return peer.name == "riffle" && options.is_relaxed();
}

// What the mode was, and what it did besides. False: there was none, though it was asked for.
bool show_mode(const Session& session, const Options& options, const Row& row) {
  const std::string mode = session.mode();
  if (!mode.empty()) {
    std::printf("# %s\n", mode.c_str());
    if (options.is_sparse()) {
      std::printf("# %.3g %% of the elements of a result are not zero\n", 100 * row.not_zero);
    }
    return true;
  }
  const std::string why = session.said("sparse does not begin");
  const bool is_choice = sparse_wish(options.sparse).is_auto && !why.empty();
  std::printf("# %s\n", is_choice ? why.c_str() : "the relaxed mode did not begin");
  return is_choice;
}

// All rows of the peers that compete under one title; the fastest of each size is kept.
void run_title(Session& session, const std::vector<Peer>& peers, std::vector<Question> all,
               const Options& options, Findings& findings) {
  const Progress progress;
  std::vector<std::optional<Row>> best(all.size());
  for (const Peer& peer : peers) {
    const bool is_relaxed = relaxed_mode_of(peer, options);
    for (Question& question : all) {
      question.is_relaxed = is_relaxed;
      question.is_background = is_relaxed && options.sync == "shadow_sync";
      question.is_sparse = is_relaxed && options.is_sparse();
    }
    progress.show(peer.name + ": starting " + std::to_string(session.site().ranks) + " processes");
    Status status = session.begin(peer);
    for (std::size_t i = 0; status && i < all.size(); ++i) {
      const auto row = session.ask(all[i], [&](int done) {
        progress.show(peer.name + ": " + std::to_string(all[i].bytes) + " bytes, " +
                      std::to_string(done) + " of " + std::to_string(all[i].warmup + all[i].iters));
      });
      status = row.status();
      if (!row) break;
      findings.failed |= row->wrong > 0 || row->off_wire;
      if (is_relaxed) {
        if (all[i].is_background) {
          std::printf(
              "# Results are not checked: rounds in the background bring the rest later.\n");
        }
        findings.failed |= !show_mode(session, options, *row);
      }
      if (!best[i] || row->time_us < best[i]->time_us) best[i] = row.value();
    }
    session.end();
    progress.show("");
    const std::string work = is_relaxed ? session.said("sparse work: ") : "";
    if (!work.empty()) std::printf("# %s\n", work.c_str());
    if (status) continue;
    std::fprintf(stderr, "riffle bench: %s\n", status.message().c_str());
    findings.failed |= peer.missing.empty();
  }
  for (const auto& row : best) {
    if (!row) continue;
    std::fputs(table_line(*row).c_str(), stdout);
    findings.rows.push_back(*row);
  }
  std::fflush(stdout);
}

// What riffle said of the network when it connected, where no file told it.
void show_probe(const Session& session) {
  std::ifstream log(session.site().folder + "/riffle.log");
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find("prob");
    if (at != std::string::npos && line.find("network") != std::string::npos) {
      std::printf("# %s\n", line.c_str());
    }
  }
}

Status run_losses(Session& session, const std::vector<Peer>& peers, const Question& question,
                  bool goes_on) {
  for (const Peer& peer : peers) {
    if (peer.name != "riffle" && peer.name != "nccl-ring") continue;  // the others just abort
    for (const std::string& kind : session.profile().fault.kinds) {
      if (Status s = session.begin(peer); !s) return s;
      const auto loss = session.lose(question, kind);
      session.end();
      if (!loss) return loss.status();
      if (goes_on && peer.name == "riffle") {
        std::printf(
            "# %s: node %d %s in mid-collective: %d of %d survivors have the result, the last "
            "after "
            "%.2f s (RIFFLE_PEER_TIMEOUT=%d); the next all-reduce takes %.2f s; %zu wrong "
            "elements\n",
            peer.name.c_str(), session.profile().fault.node, kind == "kill" ? "killed" : "stopped",
            loss->with_result, loss->survivors, loss->last_result_s, session.site().peer_timeout_s,
            loss->next_s, loss->wrong);
        std::fflush(stdout);
        if (loss->with_result != loss->survivors) {
          return remote_error("some survivor did not go on: " + loss->first_message);
        }
        if (loss->wrong > 0) return remote_error("wrong elements after a loss");
        continue;
      }
      std::printf(
          "# %s: node %d %s in mid-collective: %d of %d survivors had an error, the last "
          "after %.2f s (RIFFLE_PEER_TIMEOUT=%d)\n#   %s\n",
          peer.name.c_str(), session.profile().fault.node, kind == "kill" ? "killed" : "stopped",
          loss->with_error, loss->survivors, loss->last_error_s, session.site().peer_timeout_s,
          loss->first_message.c_str());
      std::fflush(stdout);
      if (loss->with_error != loss->survivors) return remote_error("some survivor had no error");
    }
  }
  return Status::ok();
}

// Riffle as it is, riffle with a fixed plan and the peers asked for, while a foreign flow comes and
// goes.
Status run_contention(Session& session, const std::vector<Peer>& peers, const Question& question,
                      const Options& options, Findings& findings) {
  const Progress progress;
  std::vector<bench::Series> all;
  for (const Peer& peer : peers) {
    if (Status s = session.begin(peer); !s) return s;
    const auto series = bench::contend(session, question, options.contention(), [&](int done) {
      progress.show(peer.name + ": " + std::to_string(done) + " all-reduces");
    });
    session.end();
    progress.show("");
    if (!series) return series.status();
    all.push_back(*series);
    all.back().peer = peer.name;
    for (const bench::Moment& m : all.back().moments) findings.failed |= m.wrong > 0;
    std::fputs(bench::contention_table(all.back(), options.contention()).c_str(), stdout);
    std::fflush(stdout);
  }
  if (options.json.empty()) return Status::ok();
  std::ofstream file(options.json);
  file << bench::to_json(all);
  return file.flush() ? Status::ok() : system_error("cannot write " + options.json);
}

bench::SparseQuestion sparse_question(const Options& options, const Question& question) {
  bench::SparseQuestion sparse;
  sparse.schemes = options.sparse_peers;
  sparse.bytes = question.bytes;
  sparse.density = options.density;
  sparse.teams = options.teams;
  sparse.iters = options.has_iters ? options.iters : kSparseIters;
  if (!options.gradients.empty()) {
    sparse.gradients = std::filesystem::absolute(options.gradients).string();
  }
  return sparse;
}

// Before the other rows take their time.
Status check_sparse(const Options& options, const std::vector<Question>& all,
                    const cluster::Profile& profile) {
  if (options.sparse_peers.empty()) return Status::ok();
  if (options.type != "float" || options.op != "sum" || options.is_relaxed()) {
    return invalid_argument("--sparse-peers takes exact float sums");
  }
  for (const Question& question : all) {
    if (Status s = validate(sparse_question(options, question), profile); !s) return s;
  }
  return Status::ok();
}

// Sparse schemes beside each other, one table for each size; riffle's own rows are there already.
Status run_sparse(Session& session, const Options& options, const std::vector<Question>& all,
                  Findings& findings) {
  const Progress progress;
  for (const Question& question : all) {
    bench::SparseQuestion sparse = sparse_question(options, question);
    for (const Row& row : findings.rows) {
      if (row.peer == "riffle" && row.question.bytes == question.bytes) {
        sparse.dense_time_us = row.time_us;
      }
    }
    const auto rows =
        bench::compare(session, sparse, [&](const std::string& text) { progress.show(text); });
    progress.show("");
    if (!rows) return rows.status();
    std::fputs(bench::sparse_head(sparse, rows->front()).c_str(), stdout);
    for (const bench::SparseRow& row : *rows) {
      std::fputs(bench::sparse_line(row).c_str(), stdout);
      findings.failed |= row.wrong > 0;
      findings.sparse.push_back(row);
    }
    std::fflush(stdout);
  }
  return Status::ok();
}

Status write_json(const Findings& findings, const std::string& path) {
  nlohmann::json rows = nlohmann::json::parse(bench::to_json(findings.rows));
  for (const bench::SparseRow& row : findings.sparse) rows.push_back(bench::to_json(row));
  std::ofstream file(path);
  file << rows.dump(2) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + path);
}

int run(const Options& options) {
  auto profile = cluster::load_profile(options.profile, profile_folder());
  if (profile && options.nodes > 0) profile = resized(*profile, options.nodes);
  if (!profile) return report(profile.status());
  const auto all = questions(options);
  if (!all) return report(all.status());
  if (Status s = check_sparse(options, all.value(), *profile); !s) return report(s);
  const bool fault = profile->fault.node >= 0;
  const bool contended = profile->neighbour.node >= 0;
  bench::SessionOptions session_options;
  session_options.plugin = options.plugin.empty() ? plugin_file() : options.plugin;
  session_options.programs = peer_program_folder();
  session_options.allow_loopback = options.loopback;
  session_options.live_fabric = options.fabric == "live";
  session_options.peer_timeout_s = options.peer_timeout_s ? options.peer_timeout_s : fault ? 3 : 60;
  if (session_options.plugin.empty()) {
    return report(system_error("libnccl-net-riffle.so is not beside this command; give --plugin"));
  }
  if (!options.record.empty()) {
    const std::string folder = std::filesystem::absolute(options.record).string() + "/";
    setenv("RIFFLE_RECORD", folder.c_str(), 1);  // the workers inherit it
  }
  if (options.is_relaxed()) {  // the workers inherit these too
    setenv("RIFFLE_SYNC", options.sync.c_str(), 1);
    setenv("RIFFLE_SPARSE", options.sparse.c_str(), 1);
    setenv("RIFFLE_SPARSE_RAMP", "0", 0);
    setenv("RIFFLE_OPTIMIZER", "sgd", 0);
    setenv("RIFFLE_WARMUP_STEPS", "2", 0);
    setenv("NCCL_DEBUG", "INFO", 0);
  }
  if (!options.on_loss.empty()) setenv("RIFFLE_ON_LOSS", options.on_loss.c_str(), 1);
  auto session = Session::open(profile.value(), session_options);
  if (!session) return report(session.status());
  std::vector<std::string> names = {"riffle"};
  for (const std::string& name : options.peers) {
    if (name != "riffle") names.push_back(name);
  }
  const auto peers = find_peers(names, session.value()->site());
  if (!peers) return report(peers.status());

  std::fputs(bench::table_head(profile.value(), session.value()->site().cluster != nullptr).c_str(),
             stdout);
  Findings findings;
  if (contended) {
    if (session.value()->site().cluster == nullptr) {
      return report(invalid_argument("a profile with a neighbour needs namespaces"));
    }
    const Status status =
        run_contention(*session.value(), peers.value(), all->front(), options, findings);
    if (!status) return report(status);
    return findings.failed ? kFailed : 0;
  }
  for (std::size_t i = 0; i < peers->size();) {
    std::vector<Peer> competing;
    const std::string title = peers.value()[i].title;
    for (; i < peers->size() && peers.value()[i].title == title; ++i) {
      competing.push_back(peers.value()[i]);
    }
    run_title(*session.value(), competing, all.value(), options, findings);
    if (options.fabric == "live" && title == "riffle") show_probe(*session.value());
  }
  const bench::Site& site = session.value()->site();
  if (site.cluster != nullptr && !profile->shaped() && site.ranks == 2) {
    std::fputs(bench::path_speed(site).c_str(), stdout);
  }
  Status status;
  if (fault)
    status =
        run_losses(*session.value(), peers.value(), all->front(), options.on_loss == "continue");
  if (status && !options.sparse_peers.empty()) {
    status = run_sparse(*session.value(), options, all.value(), findings);
  }
  if (!options.json.empty()) {
    if (Status s = write_json(findings, options.json); !s) return report(s);
  }
  if (!status) return report(status);
  return findings.failed ? kFailed : 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("bench", "All-reduce beside other libraries on an emulated cluster");
  sub->add_option("--profile", o->profile, "Name in bench/profiles, or a TOML file")->required();
  sub->add_option(
         "--peers", o->peers,
         "nccl-ring, gloo, openmpi, riffle-fixed (no epochs), riffle-exact; riffle always runs")
      ->delimiter(',');
  sub->add_option("--sizes", o->sizes, "Bytes per buffer, with K, M or G")->delimiter(',');
  sub->add_option("--dtype", o->type, "Element type, nccl-tests' names")->capture_default_str();
  sub->add_option("--redop", o->op, "sum, prod, max, min")->capture_default_str();
  sub->add_option("--iters", o->iters, "Measured all-reduces per row")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  sub->add_option("--warmup", o->warmup, "All-reduces before them")->check(CLI::Range(0, 1000));
  sub->add_option("--fabric", o->fabric,
                  "file: riffle is told the profile's rates; live: it probes the network itself")
      ->check(CLI::IsMember({"file", "live"}))
      ->capture_default_str();
  sub->add_option("--phases", o->phases,
                  "Profiles with a neighbour: all-reduces before, with and after the foreign flow")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(1, 10000));
  sub->add_option(
         "--sync", o->sync,
         "RIFFLE_SYNC of riffle, which is then timed in that mode, its full steps among the "
         "others; what is checked is the sum over all nodes. --peers riffle-exact beside it")
      ->check(CLI::IsMember({"exact", "ds_sync", "moshpit", "shadow_sync"}))
      ->capture_default_str();
  sub->add_option("--nodes", o->nodes,
                  "Nodes instead of the profile's: node r is as its node r modulo their number")
      ->check(CLI::Range(2, cluster::kMaxEmulatedNodes));
  sub->add_option(
         "--sparse-peers", o->sparse_peers,
         "Sparse all-reduces over the same connections, in turns: spardl, spardl-teams, "
         "topka, topkdsa, gtopk, oktopk; ring and ring-bf16, which are dense; NAME/1M works in "
         "chunks of 1 MiB, several at a time, as the plugin would; --iters is "
         "then 20 for these by default")
      ->delimiter(',');
  sub->add_option("--density", o->density, "Of sparse peers: the share of elements that is kept")
      ->capture_default_str();
  sub->add_option(
         "--teams", o->teams,
         "Of spardl-teams: must divide the nodes; by default one for each rack where racks "
         "are equal, else the least above 1")
      ->check(CLI::Range(1, cluster::kMaxEmulatedNodes));
  sub->add_option("--gradients", o->gradients,
                  "Of sparse peers: a file of bench/sparse/record_gradients.py; by default "
                  "heavy-tailed random numbers");
  sub->add_option("--sparse", o->sparse,
                  "RIFFLE_SPARSE of riffle, which is then timed with it, without a ramp, on data "
                  "like gradients; what is checked is that all nodes get the same. --peers "
                  "riffle-exact beside it")
      ->capture_default_str();
  sub->add_option("--json", o->json, "File for the rows as JSON");
  sub->add_option("--record", o->record, "Folder for riffle's record, for riffle explain");
  sub->add_option("--plugin", o->plugin,
                  "The shared object; by default the one beside this command");
  sub->add_option("--peer-timeout", o->peer_timeout_s, "RIFFLE_PEER_TIMEOUT in seconds")
      ->check(CLI::Range(1, 86400));
  sub->add_option("--on-loss", o->on_loss,
                  "RIFFLE_ON_LOSS; with continue a profile's fault must be survived, with right "
                  "results and a further all-reduce")
      ->check(CLI::IsMember({"error", "continue"}));
  sub->add_flag("--loopback", o->loopback,
                "Where namespaces are not allowed: run on loopback, without rates");
  sub->footer(
      "Every result is compared with the exact sum. Exit code 0: all right; 1: a wrong result, or "
      "a\n"
      "peer failed; 2: wrong usage.\n"
      "Example: riffle bench --profile racks8 --peers nccl-ring,gloo,openmpi --sizes 16M,32M");
  sub->callback([o, sub, &exit_code] {
    o->has_iters = sub->count("--iters") > 0;
    exit_code = run(*o);
  });
}

}  // namespace riffle::tools
