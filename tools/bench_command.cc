// `riffle bench`: riffle beside other libraries on an emulated cluster.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/harness/contenders.h"
#include "bench/harness/path_speed.h"
#include "bench/harness/report.h"
#include "lab/cluster/profile_file.h"
#include "tools/bench/rows.h"
#include "tools/command.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

using bench::Peer;
using bench::Session;

Status write_json(const BenchFindings& findings, const std::string& path) {
  nlohmann::json rows = nlohmann::json::parse(bench::to_json(findings.rows));
  for (const bench::SparseRow& row : findings.sparse) rows.push_back(bench::to_json(row));
  for (const auto& of_size : findings.turns) {
    for (nlohmann::json& row : bench::to_json(of_size)) rows.push_back(std::move(row));
  }
  std::ofstream file(path);
  file << rows.dump(2) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + path);
}

// Those of --plugin, else the one beside this command.
Result<std::vector<bench::Contender>> shared_objects(const BenchOptions& options) {
  if (options.plugins.empty()) {
    const std::string file = plugin_place().file;
    if (!file.empty()) return std::vector<bench::Contender>{{"riffle", file}};
    return system_error("libnccl-net-riffle.so is not beside this command; give --plugin");
  }
  auto all = bench::contenders(options.plugins);
  if (all) {
    if (Status s = bench::apply_settings(options.settings, *all); !s) return s;
  }
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    if (Status s = bench::check_plugin((*all)[i]); !s) return s;
  }
  return all;
}

int run_in_turns(const Session& session, const std::vector<bench::Contender>& plugins,
                 const std::vector<bench::Question>& all, const BenchOptions& options) {
  BenchFindings findings;
  const Status status = run_turns(session, plugins, all, options, findings);
  if (!findings.turns.empty() && !options.json.empty()) {
    if (const Status s = write_json(findings, options.json); !s) return report(s);
  }
  if (!status) return report(status);
  return findings.failed ? kFailed : 0;
}

int run(const BenchOptions& options) {
  auto profile = cluster::load_profile(options.profile, profile_folder());
  if (profile && options.nodes > 0) profile = resized(*profile, options.nodes);
  if (!profile) return report(profile.status());
  const auto all = questions(options);
  if (!all) return report(all.status());
  if (Status s = check_sparse(options, all.value(), *profile); !s) return report(s);
  const auto plugins = shared_objects(options);
  if (!plugins) return report(plugins.status());
  const bool in_turns = plugins->size() > 1 || options.in_turns;
  if (plugins->size() == 1 && !options.settings.empty()) {
    return report(invalid_argument("--settings takes several --plugin"));
  }
  if (in_turns) {
    if (Status s = check_turns(options, *profile); !s) return report(s);
  }
  const bool fault = profile->fault.node >= 0;
  const bool contended = profile->neighbour.node >= 0;
  bench::SessionOptions session_options;
  session_options.plugin = plugins->front().file;
  session_options.programs = peer_program_folder();
  session_options.allow_loopback = options.loopback;
  session_options.live_fabric = options.fabric == "live";
  if (options.congestion != "system") session_options.congestion = options.congestion;
  session_options.peer_timeout_s = options.peer_timeout_s ? options.peer_timeout_s : fault ? 3 : 60;
  if (!options.record.empty()) {
    const std::string folder = std::filesystem::absolute(options.record).string() + "/";
    setenv("RIFFLE_RECORD", folder.c_str(), 1);  // the workers inherit it
  }
  if (options.is_relaxed()) {  // the workers inherit these too
    setenv("RIFFLE_SYNC", options.sync.c_str(), 1);
    setenv("RIFFLE_SPARSE", options.sparse.c_str(), 1);
    setenv("RIFFLE_WIRE", options.wire.c_str(), 1);
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

  std::fputs(bench::table_head(*profile, session.value()->site().cluster != nullptr,
                               session.value()->congestion())
                 .c_str(),
             stdout);
  if (options.in_turns) {
    const auto all_rivals = bench::rivals(plugins->front().file, peers.value());
    if (!all_rivals) return report(all_rivals.status());
    return run_in_turns(*session.value(), *all_rivals, all.value(), options);
  }
  if (in_turns) return run_in_turns(*session.value(), *plugins, all.value(), options);
  BenchFindings findings;
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
  auto o = std::make_shared<BenchOptions>();
  CLI::App* sub =
      app.add_subcommand("bench", "All-reduce beside other libraries on an emulated cluster");
  sub->add_option("--profile", o->profile, "Name in bench/profiles, a TOML file, or random:SEED")
      ->required();
  sub->add_option("--peers", o->peers,
                  "What riffle, which always runs, is compared with; a list is below")
      ->delimiter(',');
  sub->add_option("--sizes", o->sizes, "Bytes per buffer, with K, M or G")->delimiter(',');
  sub->add_option("--dtype", o->type, "Element type, nccl-tests' names")->capture_default_str();
  sub->add_option("--redop", o->op, "sum, prod, max, min")->capture_default_str();
  sub->add_option("--iters", o->iters, "Measured all-reduces per row")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  sub->add_option("--warmup", o->warmup, "All-reduces before them")->check(CLI::Range(0, 1000));
  sub->add_option("--fabric", o->fabric,
                  "live: riffle probes the network itself; file: it is told the profile's rates")
      ->check(CLI::IsMember({"file", "live"}))
      ->capture_default_str();
  sub->add_option("--congestion", o->congestion,
                  "TCP congestion control of every socket of every peer between nodes; system: the "
                  "machine's, and riffle's own choice")
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
         "Of spardl-teams and spardl-reuse: must divide the nodes; by default one for each rack "
         "where racks are equal, else the least above 1, and what the planner takes")
      ->check(CLI::Range(1, cluster::kMaxEmulatedNodes));
  sub->add_option("--gradients", o->gradients,
                  "Of sparse peers: a file of bench/sparse/record_gradients.py; by default "
                  "heavy-tailed random numbers");
  sub->add_option("--sparse", o->sparse,
                  "RIFFLE_SPARSE of riffle, which is then timed with it, without a ramp, on data "
                  "like gradients; what is checked is that all nodes get the same. --peers "
                  "riffle-exact beside it")
      ->capture_default_str();
  sub->add_option("--wire", o->wire,
                  "RIFFLE_WIRE of riffle, which is then timed with it; what is checked is that all "
                  "nodes get the same, and the sum over all elements to a rounding of the format. "
                  "--peers riffle-exact beside it")
      ->check(CLI::IsMember({"exact", "bf16", "fp8block"}))
      ->capture_default_str();
  sub->add_option("--json", o->json, "File for the rows as JSON");
  sub->add_option("--record", o->record, "Folder for riffle's record, for riffle explain");
  sub->add_option("--plugin", o->plugins,
                  "The shared object; by default the one beside this command. Given several times, "
                  "as FILE or NAME=FILE: they are measured in turns, and the ratio of their times "
                  "pair by pair; --iters is then per round, by default 2, and 20 below 1M")
      ->allow_extra_args(false);
  sub->add_flag("--in-turns", o->in_turns,
                "riffle and all of --peers, each variant by itself, in turns as several --plugin, "
                "and the ratio of their times to riffle's pair by pair");
  sub->add_option(
         "--settings", o->settings,
         "Of several --plugin: NAME:KEY=VALUE,KEY=VALUE..., environment of the one called NAME; "
         "KEY warmup: its all-reduces before the measured ones, instead of --warmup")
      ->allow_extra_args(false);
  sub->add_option("--rounds", o->rounds,
                  "Of several --plugin, --in-turns: how often all processes start anew, as where "
                  "they run stays "
                  "the same within a round; 6 and more give an interval")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
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
      "Peers, each of which can be asked for; a variant, such as gloo-hd, too:\n" +
      bench::peer_names() +
      "Example: riffle bench --profile racks8 --peers nccl-best,blueconnect,gloo --sizes 16M,32M");
  sub->callback([o, sub, &exit_code] {
    o->has_iters = sub->count("--iters") > 0;
    exit_code = run(*o);
  });
}

}  // namespace riffle::tools
