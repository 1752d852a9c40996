#include "test/host_tests/replay.h"

#include <array>
#include <cstring>
#include <set>
#include <thread>

#include "test/host/pattern.h"
#include "test/host/plugin_call.h"
#include "test/host_tests/replay_mirror.h"
#include "test/host_tests/replay_objects.h"

namespace riffle::host {
namespace {

constexpr int kDeadlineMs = 30000;

// What the replay of one file needs to know before it starts.
struct Plan {
  std::map<int, std::vector<const Json*>> progress;            // by recorded thread
  std::vector<const Json*> service;                            // everything else
  std::map<std::string, std::vector<MirrorMessage>> messages;  // by NET object: sizes and tags
  std::map<const Json*, std::pair<std::string, int>> transfers_before;  // of a teardown call
};

bool is_transfer(const Json& c) {
  const std::string call = c["call"];
  return call == "isend" || call == "irecv" || call == "iallreduce" || call == "test" ||
         call == "iflush";
}

std::string object_of(const Json& c) {
  for (const char* field : {"sendComm", "recvComm"}) {
    if (c.contains(field)) return object_name("net", c[field]);
  }
  return c.contains("collComm") ? object_name("coll", c["collComm"]) : object_name("net", c["obj"]);
}

Plan make_plan(const Trace& trace) {
  Plan plan;
  std::map<std::string, std::string> object_of_request;  // "net 17" -> object
  std::map<std::string, std::size_t> receive_of_request;
  std::map<std::string, int> transfers;
  std::set<int> failed_threads;
  for (const Json& c : trace.calls) {
    const std::string call = c["call"], interface = c["if"];
    if (!is_transfer(c)) {
      plan.service.push_back(&c);
      if (call == "deregMr" || call.rfind("close", 0) == 0) {
        if (call == "closeListen") continue;
        const std::string object = object_of(c);
        plan.transfers_before[&c] = {object, transfers[object]};
      }
      continue;
    }
    const int thread = c["tid"];
    if (c.contains("ret")) failed_threads.insert(thread);
    if (failed_threads.count(thread) != 0) continue;        // NCCL made no call after it either
    if (c.contains("req") && c["req"].is_null()) continue;  // refused; the accepted one follows
    const std::string request = interface + " " + std::to_string(c["req"].get<int>());
    std::string object;
    if (call == "test") {
      object = object_of_request[request];
      auto it = receive_of_request.find(request);
      if (it != receive_of_request.end()) {
        plan.messages[object][it->second].bytes = c["sizes"][0];
        receive_of_request.erase(it);
      }
    } else {
      object = object_of(c);
      object_of_request[request] = object;
      if (call == "isend") plan.messages[object].push_back({c["size"], c["tag"]});
      if (call == "irecv") {
        receive_of_request[request] = plan.messages[object].size();
        plan.messages[object].push_back({0, c["tags"][0]});
      }
    }
    ++transfers[object];
    plan.progress[thread].push_back(&c);
  }
  return plan;
}

class Player {
 public:
  Player(PluginLibrary& library, const Trace& trace, Bootstrap& all)
      : net_(library.net()),
        collnet_(library.collnet()),
        tuner_(library.tuner()),
        trace_(trace),
        all_(all),
        plan_(make_plan(trace)),
        objects_(kDeadlineMs),
        mirror_(net_) {}

  Status run() {
    for (const Json& b : trace_.header["buffers"]) {
      objects_.region(object_name("buf", b["buf"]), b["len"].get<std::size_t>() + 8192);
    }
    std::vector<std::thread> threads;
    std::vector<Status> results(plan_.progress.size());
    std::size_t i = 0;
    for (auto& [thread, calls] : plan_.progress) {
      threads.emplace_back([this, &calls = calls, &result = results[i++]] {
        result = run_progress(calls);
        if (!result) objects_.fail();
      });
    }
    Status status = run_service();
    if (!status) objects_.fail();
    for (std::thread& t : threads) t.join();
    for (Status& r : results) {
      if (!r) return r;  // the cause rather than what followed from it
    }
    if (Status s = mirror_.status(); !s) return s;
    return status;
  }

 private:
  struct Listening {
    std::array<std::byte, kHandleBytes> handle{};
    void* comm = nullptr;
    void* context = nullptr;
  };

  // --- set-up and teardown ---
  Status run_service() {
    for (const Json* c : plan_.service) {
      const std::string interface = (*c)["if"];
      Status s = interface == "net"       ? net_call(*c)
                 : interface == "collnet" ? collnet_call(*c)
                                          : tuner_call(*c);
      if (!s) return s;
    }
    return Status::ok();
  }

  Status wait_for_transfers(const Json& c) {
    auto it = plan_.transfers_before.find(&c);
    if (it == plan_.transfers_before.end()) return Status::ok();
    const auto& [object, wanted] = it->second;
    return objects_.wait_transfers(object, wanted)
               ? Status::ok()
               : timeout_error("transfers of " + object + " before its teardown are not done");
  }

  Status net_call(const Json& c) {
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
    if (call == "regMr" || call == "deregMr") {
      const std::string object = object_name("net", c["obj"]), region = region_name(c["data"]);
      void* comm = objects_.get(object);
      if (call == "deregMr")
        return ok(net_.deregister_memory(comm, objects_.take_handle(object, region)));
      void* handle = nullptr;
      const std::size_t bytes = c["size"];
      const int r = net_.register_memory(comm, objects_.region(region, bytes), bytes, &handle);
      objects_.put_handle(object, region, handle);
      return ok(r);
    }
    if (call == "closeSend")
      return ok(net_.close_send(objects_.get(object_name("net", c["sendComm"]))));
    if (call == "closeRecv")
      return ok(net_.close_recv(objects_.get(object_name("net", c["recvComm"]))));
    return internal_error("unknown NET call in the trace: " + call);
  }

  // Brings up both ends of a connection in turns, as two ranks would.
  Status meet(void* context, Listening& l, void** send_comm, void** recv_comm) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
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

  Status net_connect(const Json& c, void* context) {
    Listening l;
    if (int r = net_.listen(context, 0, l.handle.data(), &l.comm); r != kSuccess) {
      return plugin_status(r, "NET listen (mirror)");
    }
    void *ours = nullptr, *theirs = nullptr;
    if (Status s = meet(context, l, &ours, &theirs); !s) return s;
    if (int r = net_.close_listen(l.comm); r != kSuccess)
      return plugin_status(r, "NET closeListen");
    return introduce(c["sendComm"], ours, theirs, false);
  }

  Status net_accept(const Json& c) {
    Listening& l = listening_[c["listenComm"]];
    void *ours = nullptr, *theirs = nullptr;
    if (Status s = meet(l.context, l, &theirs, &ours); !s) return s;
    return introduce(c["recvComm"], ours, theirs, true);
  }

  Status introduce(const Json& id, void* ours, void* theirs, bool mirror_sends) {
    const std::string name = object_name("net", id);
    if (Status s = mirror_.add(theirs, id, mirror_sends, plan_.messages[name]); !s) return s;
    objects_.put(name, ours);
    return Status::ok();
  }

  Status collnet_call(const Json& c) {
    const std::string call = c["call"];
    if (collnet_ == nullptr) return internal_error("the library has no COLLNET table loaded");
    auto ok = [&](int result) { return plugin_status(result, "COLLNET " + call); };
    if (Status s = wait_for_transfers(c); !s) return s;
    if (call == "init")
      return ok(collnet_->init(comm_id(c), &contexts_["coll" + c["comm"].dump()]));
    if (call == "finalize") return ok(collnet_->finalize(contexts_["coll" + c["comm"].dump()]));
    if (call == "devices") {
      int n = 0;
      return ok(collnet_->devices(&n));
    }
    if (call == "getProperties") {
      DeviceProperties p;
      return ok(collnet_->properties(0, &p));
    }
    if (call == "reduceSupport") {
      int yes = 0;
      const int r = collnet_->reduce_support(c["type"], c["op"], &yes);
      return yes != c["supported"] ? internal_error("reduceSupport differs: " + c.dump()) : ok(r);
    }
    if (call == "listen") {
      Listening& l = listening_[c["listenComm"]];
      return ok(
          collnet_->listen(contexts_["coll" + c["comm"].dump()], 0, l.handle.data(), &l.comm));
    }
    if (call == "connect.begin") return Status::ok();
    if (call == "connect") return collnet_connect(c);
    if (call == "closeListen") return ok(collnet_->close_listen(listening_[c["listenComm"]].comm));
    const std::string object = object_name("coll", c["collComm"]);
    void* comm = objects_.get(object);
    if (call == "closeColl") return ok(collnet_->close_coll(comm));
    if (call != "regMr" && call != "deregMr") return internal_error("unknown COLLNET call " + call);
    const std::string region = region_name(c["data"]);
    if (call == "regMr") {
      void* handle = nullptr;
      const std::size_t bytes = c["size"];
      const int r = collnet_->register_memory(comm, objects_.region(region, bytes), bytes, &handle);
      objects_.put_handle(object, region, handle);
      return ok(r);
    }
    const int r = collnet_->deregister_memory(comm, objects_.take_handle(object, region));
    objects_.unmap(region);  // NCCL frees it with the first of its handles
    return ok(r);
  }

  Status collnet_connect(const Json& c) {
    Listening& l = listening_[c["listenComm"]];
    const int ranks = c["nranks"];
    std::vector<std::byte> handles(kHandleBytes * static_cast<std::size_t>(all_.size()));
    if (Status s = all_.all_gather(l.handle.data(), handles.data(), kHandleBytes); !s) return s;
    // Half a split: the ranks of the same parity.
    const int stride = all_.size() / ranks;
    std::vector<void*> pointers;
    for (int r = all_.rank() % stride; r < all_.size(); r += stride) {
      pointers.push_back(handles.data() + kHandleBytes * static_cast<std::size_t>(r));
    }
    void* comm = nullptr;
    const int place = all_.rank() / stride;
    const int r = collnet_->connect(pointers.data(), ranks, place, l.comm, &comm);
    if (r != kSuccess || comm == nullptr) {
      return r != kSuccess ? plugin_status(r, "COLLNET connect")
                           : system_error("COLLNET connect: no object");
    }
    const std::string name = object_name("coll", c["collComm"]);
    {
      std::scoped_lock lock(mutex_);
      places_[name] = {ranks, place};
    }
    objects_.put(name, comm);
    return Status::ok();
  }

  Status tuner_call(const Json& c) {
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
    const int r =
        tuner_->choose(context, c["coll"], c["nBytes"], c["numPipeOps"], table, &channels);
    for (int a = 0; a < kAlgorithms; ++a) {
      for (int p = 0; p < kProtocols; ++p) {
        if (before[a][p] < 0 && table[a][p] >= 0)
          return internal_error("the tuner offers what NCCL has not: " + c.dump());
      }
    }
    return plugin_status(r, "TUNER getCollInfo");
  }

  // --- transfers ---
  struct Request {
    void* handle = nullptr;
    std::string object;
    const Json* call = nullptr;
    int index = 0;  // message of its connection, or collective of its coll object
  };

  Status run_progress(const std::vector<const Json*>& calls) {
    std::map<std::string, Request> requests;  // of this thread
    std::map<std::string, int> next;          // index per object
    for (const Json* c : calls) {
      const std::string request = (*c)["if"].get<std::string>() + " " + (*c)["req"].dump();
      std::string object;
      if ((*c)["call"] == "test") {
        object = requests[request].object;
        if (Status s = finish(requests[request], *c); !s) return s;
        requests.erase(request);
      } else {
        object = object_of(*c);
        Request r{nullptr, object, c, next[object]++};
        if (Status s = post(*c, &r); !s) return s;
        requests[request] = r;
      }
      objects_.count_transfer(object);
    }
    return Status::ok();
  }

  // Offers a call until it is accepted.
  template <class F>
  Status until_accepted(const char* what, void** request, F&& call) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
    for (;;) {
      *request = nullptr;
      if (const int r = call(); r != kSuccess) return plugin_status(r, what);
      if (*request != nullptr) return Status::ok();
      if (objects_.failed())
        return timeout_error(std::string(what) + ": the replay failed elsewhere");
      if (std::chrono::steady_clock::now() > deadline)
        return timeout_error(std::string(what) + " refused for too long");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  Status post(const Json& c, Request* r) {
    void* comm = objects_.get(r->object);
    if (comm == nullptr) return timeout_error(r->object + " does not come up");
    const std::string call = c["call"];
    if (call == "iallreduce") return post_all_reduce(c, comm, r);
    const bool send = call == "isend";
    const Json& data = send ? c["data"] : c["data"][0];
    void* mr = nullptr;
    if (!objects_.get_handle(r->object, region_name(send ? c["mh"] : c["mh"][0]), &mr)) {
      return timeout_error("no registration for " + c.dump());
    }
    void* address = objects_.at(data);
    if (send) {
      const std::size_t bytes = c["size"];
      fill_message(static_cast<std::byte*>(address), bytes, connection_of(r->object), r->index);
      return until_accepted("NET isend", &r->handle, [&] {
        return net_.isend(comm, address, bytes, c["tag"], mr, &r->handle);
      });
    }
    std::size_t capacity = c["sizes"][0];
    int tag = c["tags"][0];
    return until_accepted("NET irecv", &r->handle, [&] {
      return net_.irecv(comm, 1, &address, &capacity, &tag, &mr, &r->handle);
    });
  }

  Status post_all_reduce(const Json& c, void* comm, Request* r) {
    void *send_mr = nullptr, *recv_mr = nullptr;
    if (!objects_.get_handle(r->object, region_name(c["smh"]), &send_mr) ||
        !objects_.get_handle(r->object, region_name(c["rmh"]), &recv_mr)) {
      return timeout_error("no registration for " + c.dump());
    }
    const auto type = static_cast<DataType>(c["type"].get<int>());
    const std::size_t count = c["count"];
    std::byte* send = objects_.at(c["send"]);
    fill_pattern(send, count, type, place_of(r->object).second, static_cast<unsigned>(r->index));
    return until_accepted("COLLNET iallreduce", &r->handle, [&] {
      return collnet_->iallreduce(comm, send, objects_.at(c["recv"]), count, c["type"], c["op"],
                                  send_mr, recv_mr, &r->handle);
    });
  }

  Status finish(const Request& r, const Json& test) {
    const bool collnet = test["if"] == "collnet";
    int done = 0, size = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
    while (done == 0) {
      const int result =
          collnet ? collnet_->test(r.handle, &done, &size) : net_.test(r.handle, &done, &size);
      if (result != kSuccess) return plugin_status(result, "test of " + r.call->dump());
      if (done != 0) break;
      if (objects_.failed() || std::chrono::steady_clock::now() > deadline) {
        return timeout_error("does not complete: " + r.call->dump());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    const Json& c = *r.call;
    if (collnet) {
      const auto [ranks, place] = place_of(r.object);
      const std::size_t wrong = count_wrong(
          objects_.at(c["recv"]), c["count"], static_cast<DataType>(c["type"].get<int>()),
          static_cast<Op>(c["op"].get<int>()), ranks, static_cast<unsigned>(r.index));
      if (wrong != 0) return internal_error(std::to_string(wrong) + " wrong elements: " + c.dump());
      return Status::ok();
    }
    if (size != test["sizes"][0]) {
      return internal_error("size " + std::to_string(size) + " instead of that of " + test.dump());
    }
    if (c["call"] == "irecv" &&
        !is_message(objects_.at(c["data"][0]), static_cast<std::size_t>(size),
                    connection_of(r.object), r.index)) {
      return internal_error("wrong contents: " + c.dump());
    }
    return Status::ok();
  }

  static int connection_of(const std::string& object) { return std::stoi(object.substr(4)); }
  std::pair<int, int> place_of(const std::string& object) {
    std::scoped_lock lock(mutex_);
    return places_[object];
  }
  std::uint64_t comm_id(const Json& c) const { return 0xc0ffee00 + c["comm"].get<std::uint64_t>(); }

  NetTable& net_;
  CollNetTable* collnet_;
  TunerTable* tuner_;
  const Trace& trace_;
  Bootstrap& all_;
  Plan plan_;
  ReplayObjects objects_;
  ReplayMirror mirror_;
  std::map<std::string, void*> contexts_;
  std::map<int, Listening> listening_;
  std::mutex mutex_;                                   // guards places_
  std::map<std::string, std::pair<int, int>> places_;  // coll object: ranks, place
};

}  // namespace

Status replay(PluginLibrary& library, const Trace& trace, Bootstrap& all) {
  Player player(library, trace, all);
  return player.run();
}

}  // namespace riffle::host
