// riffle_message_bench: what a message costs the processors of the node that sends it and of the
// one that receives it, through the plugin's TCP mesh and through a bare loop, in turns, for
// payloads of several sizes. Processor time of the two threads, so that a busy machine does not
// look like a slow one; over loopback, where the kernel's work for the network's hardware is
// missing and the receiver's part of the protocol is done by the thread that sends.
//
//   riffle_message_bench [--peers 1,16] [--ahead 64,1] [--sizes 64,1024] [--rounds N] [--only mesh]
//                        [--json FILE]
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/messages/bare_loop.h"
#include "bench/messages/mesh_loop.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kMostFrames = 20'000;
constexpr std::size_t kMostBytes = 64 << 20;  // in one round
constexpr double kMib = 1 << 20;

struct Options {
  std::vector<std::size_t> peers = {1, 16}, ahead = {64, 1};
  std::vector<std::size_t> sizes = {64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};
  std::size_t rounds = 7;
  std::string only, json;
  bool encrypts = false;
};

// Of both loops, by round.
struct Uses {
  std::vector<Use> mesh, bare;
};

Use median(std::vector<Use> uses) {
  if (uses.empty()) return {};
  std::ranges::sort(uses, {}, &Use::both_ns);
  return uses[uses.size() / 2];
}

void report(const Options& options, std::size_t peers, const Traffic& traffic, const Uses& uses,
            nlohmann::json* rows) {
  const auto frames = static_cast<double>(traffic.frames);
  const double mib = frames * static_cast<double>(traffic.bytes) / kMib;
  const Use mesh = median(uses.mesh), bare = median(uses.bare);
  const double ratio = bare.both_ns() > 0 ? mesh.both_ns() / bare.both_ns() : 0;
  std::printf("%6zu %6zu %8zu %9.0f %9.0f %10.0f %10.0f %10.0f %10.0f %7.2f\n", peers,
              traffic.ahead, traffic.bytes, mesh.send_ns / frames, mesh.receive_ns / frames,
              bare.send_ns / frames, bare.receive_ns / frames, mesh.both_ns() / mib,
              bare.both_ns() / mib, ratio);
  std::fflush(stdout);
  rows->push_back({{"schema", "riffle-messages-1"},
                   {"peers", peers},
                   {"ahead", traffic.ahead},
                   {"bytes", traffic.bytes},
                   {"is_encrypted", options.encrypts},
                   {"send_ns", mesh.send_ns / frames},
                   {"receive_ns", mesh.receive_ns / frames},
                   {"bare_send_ns", bare.send_ns / frames},
                   {"bare_receive_ns", bare.receive_ns / frames},
                   {"message_ns", mesh.both_ns() / frames},
                   {"bare_message_ns", bare.both_ns() / frames},
                   {"mib_ns", mesh.both_ns() / mib},
                   {"bare_mib_ns", bare.both_ns() / mib},
                   {"ratio", ratio}});
}

Result<Uses> measure(const Options& options, const Traffic& traffic, MeshLoop& mesh,
                     BareLoop& bare) {
  Uses uses;
  for (std::size_t round = 0; round <= options.rounds; ++round) {
    if (options.only != "bare") {
      const auto use = mesh.run(traffic);
      if (!use) return use.status();
      uses.mesh.push_back(*use);
    }
    if (options.only != "mesh") {
      const auto use = bare.run(traffic);
      if (!use) return use.status();
      uses.bare.push_back(*use);
    }
    if (round == 0) uses = {};  // windows open in the first one
  }
  return uses;
}

Status measure_all(const Options& options, std::size_t peers, nlohmann::json* rows) {
  auto mesh = MeshLoop::connect(peers, options.encrypts);
  if (!mesh) return mesh.status();
  auto bare = BareLoop::connect(peers);
  if (!bare) return bare.status();
  for (const std::size_t ahead : options.ahead) {
    for (const std::size_t bytes : options.sizes) {
      const Traffic traffic = {bytes, std::min(kMostFrames, kMostBytes / bytes), ahead};
      const auto uses = measure(options, traffic, **mesh, *bare);
      if (!uses) return uses.status();
      report(options, peers, traffic, *uses, rows);
    }
  }
  return Status::ok();
}

Status run(const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  std::printf(
      "# ns of processor time; mesh | bare loop\n%6s %6s %8s %9s %9s %10s %10s %10s %10s %7s\n",
      "peers", "ahead", "bytes", "send", "receive", "bare send", "bare recv", "per MiB", "bare MiB",
      "ratio");
  for (const std::size_t peers : options.peers) {
    if (Status s = measure_all(options, peers, &rows); !s) return s;
  }
  if (options.json.empty()) return Status::ok();
  std::ofstream file(options.json);
  file << rows.dump(1) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + options.json);
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  CLI::App app("What a message costs the processors of both ends, beside a bare loop");
  riffle::bench::Options o;
  app.add_option("--peers", o.peers, "Nodes that it goes to in turn, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--ahead", o.ahead, "Frames that may wait for one peer at once, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--sizes", o.sizes, "Bytes of payload, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 4 << 20));
  app.add_option("--rounds", o.rounds, "Of each loop, in turns")->check(CLI::Range(1, 10000));
  app.add_option("--only", o.only, "One of the two loops, to look at with other tools")
      ->check(CLI::IsMember({"mesh", "bare"}));
  app.add_flag("--encrypt", o.encrypts, "The mesh's frames are sealed");
  app.add_option("--json", o.json, "File for the rows");
  CLI11_PARSE(app, argc, argv);
  const riffle::Status done = riffle::bench::run(o);
  if (!done) std::fprintf(stderr, "riffle_message_bench: %s\n", done.message().c_str());
  return done ? 0 : 1;
}
