#include "test/nccl_host/replay.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "lab/nccl_host/tables/plugin_call.h"
#include "test/nccl_host/replay_player.h"

namespace riffle::host {

Player::Player(PluginLibrary& library, const Trace& trace, Bootstrap& all)
    : net_(library.net()),
      collnet_(library.collnet()),
      tuner_(library.tuner()),
      trace_(trace),
      all_(all),
      plan_(make_replay_plan(trace)),
      objects_(kReplayDeadlineMs),
      mirror_(net_) {}

Status Player::run() {
  auto id = draw_id(all_);
  if (!id) return id.status();
  job_id_ = *id;
  for (const Json& b : trace_.header["buffers"]) {
    objects_.region(object_name("buf", b["buf"]), b["len"].get<std::size_t>() + 8192);
  }
  auto note = [this](Status s) {
    if (!s) objects_.fail(std::move(s));
  };
  std::vector<std::thread> threads;
  for (auto& [thread, calls] : plan_.progress) {
    threads.emplace_back([this, note, &calls = calls] { note(run_progress(calls)); });
  }
  note(run_service());
  for (std::thread& t : threads) t.join();
  note(mirror_.status());
  return objects_.status();
}

Status Player::run_service() {
  for (const Json* c : plan_.service) {
    const std::string interface = (*c)["if"];
    Status s = interface == "net"       ? net_call(*c)
               : interface == "collnet" ? collnet_call(*c)
                                        : tuner_call(*c);
    if (!s) return s;
  }
  return Status::ok();
}

Status Player::wait_for_transfers(const Json& c) {
  auto it = plan_.transfers_before.find(&c);
  if (it == plan_.transfers_before.end()) return Status::ok();
  const auto& [object, wanted] = it->second;
  return objects_.wait_transfers(object, wanted)
             ? Status::ok()
             : timeout_error("transfers of " + object + " before its teardown are not done");
}

Status Player::tuner_call(const Json& c) {
  const std::string call = c["call"];
  if (tuner_ == nullptr) return Status::ok();
  void*& context = contexts_["tuner" + c["comm"].dump()];
  if (call == "init")
    return plugin_status(tuner_->init(comm_id(c), c["nRanks"], c["nNodes"], &context),
                         "TUNER init");
  if (call == "finalize") return plugin_status(tuner_->finalize(context), "TUNER finalize");
  float table[kAlgorithms][kProtocols];
  for (auto& row : table) std::fill(row, row + kProtocols, -1.0f);
  for (const Json& e : c["table"]) table[e[0].get<int>()][e[1].get<int>()] = e[2];
  float before[kAlgorithms][kProtocols];
  std::memcpy(before, table, sizeof table);
  int channels = 0;
  const int r = tuner_->choose(context, c["coll"], c["nBytes"], c["numPipeOps"], table, &channels);
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      if (before[a][p] < 0 && table[a][p] >= 0)
        return internal_error("the tuner offers what NCCL has not: " + c.dump());
    }
  }
  return plugin_status(r, "TUNER getCollInfo");
}

Status replay(PluginLibrary& library, const Trace& trace, Bootstrap& all) {
  Player player(library, trace, all);
  return player.run();
}

}  // namespace riffle::host
