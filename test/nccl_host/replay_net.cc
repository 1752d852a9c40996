#include <chrono>
#include <thread>

#include "lab/nccl_host/tables/plugin_call.h"
#include "test/nccl_host/replay_player.h"

namespace riffle::host {

Status Player::net_call(const Json& c) {
  const std::string call = c["call"];
  auto ok = [&](int result) { return plugin_status(result, "NET " + call); };
  if (Status s = wait_for_transfers(c); !s) return s;
  if (call == "init") return ok(net_.init(comm_id(c), &contexts_["net" + c["comm"].dump()]));
  if (call == "finalize") return ok(net_.finalize(contexts_["net" + c["comm"].dump()]));
  if (call == "devices") {
    int n = 0;
    const int r = net_.devices(&n);
    return n < 1 ? system_error("no NET device") : ok(r);
  }
  if (call == "getProperties") {
    DeviceProperties p;
    return ok(net_.properties(0, &p));
  }
  void* context = c.contains("comm") ? contexts_["net" + c["comm"].dump()] : nullptr;
  if (call == "listen") {
    Listening& l = listening_[c["listenComm"]];
    l.context = context;
    return ok(net_.listen(context, 0, l.handle.data(), &l.comm));
  }
  if (call == "connect") return net_connect(c, context);
  if (call == "accept") return net_accept(c);
  if (call == "closeListen") return ok(net_.close_listen(listening_[c["listenComm"]].comm));
  if (call == "regMr" || call == "deregMr") return net_memory(c);
  if (call == "closeSend")
    return ok(net_.close_send(objects_.get(object_name("net", c["sendComm"]))));
  if (call == "closeRecv")
    return ok(net_.close_recv(objects_.get(object_name("net", c["recvComm"]))));
  return internal_error("unknown NET call in the trace: " + call);
}

Status Player::net_memory(const Json& c) {
  const std::string object = object_name("net", c["obj"]), region = region_name(c["data"]);
  void* comm = objects_.get(object);
  if (c["call"] == "deregMr") {
    const int r = net_.deregister_memory(comm, objects_.take_handle(object, region));
    return plugin_status(r, "NET deregMr");
  }
  void* handle = nullptr;
  const std::size_t bytes = c["size"];
  const int r = net_.register_memory(comm, objects_.region(region, bytes), bytes, &handle);
  objects_.put_handle(object, region, handle);
  return plugin_status(r, "NET regMr");
}

// Brings up both ends of a connection in turns, as two ranks would.
Status Player::meet(void* context, Listening& l, void** send_comm, void** recv_comm) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kReplayDeadlineMs);
  while (*send_comm == nullptr || *recv_comm == nullptr) {
    int r = kSuccess;
    if (*send_comm == nullptr) r = net_.connect(context, 0, l.handle.data(), send_comm);
    if (r == kSuccess && *recv_comm == nullptr) r = net_.accept(l.comm, recv_comm);
    if (r != kSuccess) return plugin_status(r, "NET connect or accept");
    if (std::chrono::steady_clock::now() > deadline)
      return timeout_error("NET connect takes too long");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return Status::ok();
}

Status Player::net_connect(const Json& c, void* context) {
  Listening l;
  if (int r = net_.listen(context, 0, l.handle.data(), &l.comm); r != kSuccess) {
    return plugin_status(r, "NET listen (mirror)");
  }
  void *ours = nullptr, *theirs = nullptr;
  if (Status s = meet(context, l, &ours, &theirs); !s) return s;
  if (int r = net_.close_listen(l.comm); r != kSuccess) return plugin_status(r, "NET closeListen");
  return introduce(c["sendComm"], ours, theirs, false);
}

Status Player::net_accept(const Json& c) {
  Listening& l = listening_[c["listenComm"]];
  void *ours = nullptr, *theirs = nullptr;
  if (Status s = meet(l.context, l, &theirs, &ours); !s) return s;
  return introduce(c["recvComm"], ours, theirs, true);
}

Status Player::introduce(const Json& id, void* ours, void* theirs, bool mirror_sends) {
  const std::string name = object_name("net", id);
  if (Status s = mirror_.add(theirs, id, mirror_sends, plan_.messages[name]); !s) return s;
  objects_.put(name, ours);
  return Status::ok();
}

}  // namespace riffle::host
