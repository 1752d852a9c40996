#include "test/nccl_host/trace_job.h"

#include <algorithm>

#include "lab/nccl_host/memory_region.h"

namespace riffle::host {
namespace {

struct Item {
  int comm = 0;
  std::string collective;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  std::size_t count = 0;
  MemoryRegion send, receive;
};

DataType type_of(const std::string& name) {
  static const std::map<std::string, DataType> kTypes = {{"float", DataType::kFloat32},
                                                         {"half", DataType::kFloat16},
                                                         {"bfloat16", DataType::kBfloat16},
                                                         {"double", DataType::kFloat64},
                                                         {"int32", DataType::kInt32}};
  return kTypes.at(name);
}

Op op_of(const std::string& name) {
  static const std::map<std::string, Op> kOps = {
      {"sum", Op::kSum}, {"avg", Op::kAvg}, {"min", Op::kMin}, {"max", Op::kMax}};
  return kOps.at(name);
}

std::vector<Item> items_of(const Json& header) {
  std::vector<Item> items;
  const auto ranks = header["nranks"].get<std::size_t>();
  for (const Json& b : header["buffers"]) {
    if (b["role"] == "recv") continue;
    Item i;
    i.comm = b["comm"];
    i.collective = b["coll"];
    i.type = type_of(b["type"]);
    i.op = op_of(b["op"]);
    i.count = b["count"];
    const std::size_t bytes = i.count * size_of(i.type) * ranks + 64;
    i.send.allocate(bytes);
    i.receive.allocate(bytes);
    items.push_back(std::move(i));
  }
  return items;
}

Status issue_messages(Communicator& comm, Item& item, int rank, int ranks) {
  const std::size_t bytes = item.count * size_of(item.type);
  const int peers = item.collective == "sendrecv" ? 1 : ranks - 1;  // ring shift, or all to all
  for (int d = 1; d <= peers; ++d) {
    const int to = (rank + d) % ranks, from = (rank + ranks - d) % ranks;
    if (Status s = comm.send(item.send.data() + static_cast<std::size_t>(to) * bytes, bytes, to);
        !s)
      return s;
    std::byte* into = item.receive.data() + static_cast<std::size_t>(from) * bytes;
    if (Status s = comm.receive(into, bytes, from); !s) return s;
  }
  return Status::ok();
}

Status issue(Communicator& comm, Item& i, bool in_place, int rank, int ranks) {
  void* in = i.send.data();
  void* out = in_place ? in : i.receive.data();
  if (i.collective == "allreduce") return comm.all_reduce(in, out, i.count, i.type, i.op);
  if (i.collective == "allgather") return comm.all_gather(in, out, i.count, i.type);
  if (i.collective == "reducescatter") return comm.reduce_scatter(in, out, i.count, i.type, i.op);
  if (i.collective == "broadcast") return comm.broadcast(in, out, i.count, i.type, 0);
  if (i.collective == "reduce") return comm.reduce(in, out, i.count, i.type, i.op, 0);
  return issue_messages(comm, i, rank, ranks);
}

class Job {
 public:
  Job(const Trace& trace, Bootstrap& all) : h_(trace.header), job_(h_["job"]), all_(all) {
    faults_.collnet = h_["plugin"]["collnetDevices"] == 1;
    faults_.force_collnet = h_["plugin"]["tuner"] == true;
    faults_.all_reduce_fails_at = h_["plugin"].value("iallreduceFailsAt", -1);
    faults_.test_fails_at = h_["plugin"].value("testFailsAt", -1);
    faults_.connect_fails = h_["plugin"].value("connectFails", 0) != 0;
  }

  Status run(Recording* recording) {
    auto library = make_recording_library(recording, faults_);
    if (Status s = make_communicators(*library); !s) return s;
    std::vector<Item> items = items_of(h_);
    const auto lists = job_["lists"].size();
    const std::size_t length = items.size() / lists;
    for (std::size_t step = 0; step < job_["steps"]; ++step) {
      Item* list = items.data() + std::min(step, lists - 1) * length;
      Status s = run_step(list, length);
      if (!s && job_.value("abortOnAsyncError", false)) return abort_all();
      if (!s) return s;
    }
    for (auto& c : comms_) {
      if (Status s = c->destroy(); !s) return s;
    }
    return Status::ok();
  }

 private:
  Release release() const {
    return h_["nccl"].get<std::string>().rfind("2.28", 0) == 0 ? Release::k2_28 : Release::k2_30;
  }

  Options options() const {
    Options o;
    const Json& env = h_["env"];
    o.channels = std::stoi(env.value("NCCL_MAX_NCHANNELS", "2"));
    const std::string algorithm = env.value("NCCL_ALGO", "");
    if (algorithm == "Ring") o.algorithm = Algorithm::kRing;
    if (algorithm == "Tree") o.algorithm = Algorithm::kTree;
    if (algorithm == "allreduce:collnetchain") o.algorithm = Algorithm::kCollNetChain;
    o.release = release();
    o.point_to_point = true;
    o.progress.idle_sleep_us = 0;
    return o;
  }

  // comms_[0] is the whole job. A child of a split that shares resources and has as many nodes runs
  // on its parent's objects; one that has as many nodes and does not share gets no CollNet.
  Status make_communicators(PluginLibrary& library) {
    const bool split = job_.contains("split");
    const bool share = split && job_["split"]["splitShare"] == 1;
    const int colours = split ? job_["split"]["colors"].get<int>() : 1;
    for (int c = 0; c < job_["communicators"]; ++c) {
      if (c > 0 && share && colours == 1) {
        runs_on_.push_back(0);
        continue;
      }
      Options o = options();
      Bootstrap* group = &all_;
      if (c > 0 && split) {
        o.collnet = colours > 1;
        auto half = all_.split(all_.rank() % colours);
        if (!half) return half.status();
        groups_.push_back(std::move(*half));
        group = groups_.back().get();
      }
      auto comm = Communicator::create(library, *group, o);
      if (!comm) return comm.status();
      runs_on_.push_back(static_cast<int>(comms_.size()));
      comms_.push_back(std::move(*comm));
      places_.push_back({group->rank(), group->size()});
    }
    return Status::ok();
  }

  Status run_step(Item* list, std::size_t length) {
    const std::string how = job_["issue"];
    const bool grouped = how == "one group per step", one_by_one = how == "one at a time";
    // The collectives of a group are planned communicator by communicator; 2.28 begins with the
    // last.
    const int passes = grouped ? job_["communicators"].get<int>() : 1;
    for (int turn = 0; turn < passes; ++turn) {
      const int pass = release() == Release::k2_28 ? passes - 1 - turn : turn;
      Communicator* grouping = nullptr;
      for (std::size_t i = 0; i < length; ++i) {
        if (grouped && list[i].comm != pass) continue;
        const auto c = static_cast<std::size_t>(runs_on_[static_cast<std::size_t>(list[i].comm)]);
        Communicator& comm = *comms_[c];
        const bool messages = list[i].collective == "sendrecv" || list[i].collective == "alltoall";
        if (grouped && grouping == nullptr) (grouping = &comm)->group_start();
        if (messages && !grouped) comm.group_start();
        const auto [rank, ranks] = places_[c];
        if (Status s = issue(comm, list[i], job_["inPlace"], rank, ranks); !s) return s;
        if (messages && !grouped) {
          if (Status s = comm.group_end(); !s) return s;
        }
        if (one_by_one) {
          if (Status s = comm.wait(); !s) return s;
        }
      }
      if (grouping != nullptr) {
        if (Status s = grouping->group_end(); !s) return s;
      }
    }
    for (auto& c : comms_) {
      if (Status s = c->wait(); !s) return s;
    }
    return Status::ok();
  }

  Status abort_all() {
    for (auto& c : comms_) {
      if (Status s = c->abort(); !s) return s;
    }
    return Status::ok();
  }

  const Json& h_;
  const Json& job_;
  Bootstrap& all_;
  Faults faults_;
  std::vector<std::unique_ptr<Bootstrap>> groups_;
  std::vector<std::unique_ptr<Communicator>> comms_;
  std::vector<std::pair<int, int>> places_;  // of comms_: rank, ranks
  std::vector<int> runs_on_;                 // recorded communicator -> index in comms_
};

}  // namespace

std::string not_reproduced_because(const std::string& scenario) {
  static const std::map<std::string, std::string> kReasons = {
      {"i-2rpn", "two ranks per node: the stand-in's nodes have one GPU"},
      {"i-2rpn-buckets", "two ranks per node: the stand-in's nodes have one GPU"},
      {"l-net-maxrecvs8", "two ranks per node: the stand-in's nodes have one GPU"},
      {"j-registered", "registered GPU buffers: a host-pointer plugin never sees them"},
      {"j-registered-inflight", "registered GPU buffers: a host-pointer plugin never sees them"},
  };
  auto it = kReasons.find(scenario);
  return it == kReasons.end() ? "" : it->second;
}

Result<Recording> run_job(const Trace& trace, Bootstrap& bootstrap) {
  Recording recording;
  if (Status s = Job(trace, bootstrap).run(&recording); !s) return s;
  return recording;
}

Recording recorded(const Trace& trace) {
  Recording r;
  for (const Json& c : trace.calls) {
    const std::string call = c["call"];
    if (c["if"] == "net") {
      if (call == "connect") r.sends[c["sendComm"]];
      if (call == "accept") r.receives[c["recvComm"]];
      if (c.contains("req") && c["req"].is_null()) continue;
      if (call == "isend") r.sends[c["sendComm"]].push_back({c["tag"], c["size"]});
      if (call == "irecv") r.receives[c["recvComm"]].push_back({c["tags"][0], c["sizes"][0]});
    } else if (c["if"] == "collnet") {
      if (call == "connect") r.all_reduces[c["collComm"]];
      if (call == "regMr") ++r.registrations[c["collComm"]];
      if (call == "deregMr") ++r.deregistrations[c["collComm"]];
      if (call != "iallreduce" || c.contains("ret") || c["req"].is_null()) continue;
      r.all_reduces[c["collComm"]].push_back(
          {c["count"], c["type"], c["op"], c["send"]["off"], c["recv"]["off"]});
    }
  }
  return r;
}

}  // namespace riffle::host
