#include <chrono>
#include <thread>

#include "lab/nccl_host/tables/plugin_call.h"
#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/replay_player.h"

namespace riffle::host {

Status Player::run_progress(const std::vector<const Json*>& calls) {
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
Status Player::until_accepted(const char* what, void** request, F&& call) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kReplayDeadlineMs);
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

Status Player::post(const Json& c, Request* r) {
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

Status Player::post_all_reduce(const Json& c, void* comm, Request* r) {
  void *send_mr = nullptr, *recv_mr = nullptr;
  if (!objects_.get_handle(r->object, region_name(c["smh"]), &send_mr) ||
      !objects_.get_handle(r->object, region_name(c["rmh"]), &recv_mr)) {
    return timeout_error("no registration for " + c.dump());
  }
  const auto type = static_cast<DataType>(c["type"].get<int>());
  const std::size_t count = c["count"];
  std::byte* send = objects_.at(c["send"]);
  fill_pattern(send, count, type, place_of(r->object).second, static_cast<unsigned>(r->index));
  Status posted = until_accepted("COLLNET iallreduce", &r->handle, [&] {
    return collnet_->iallreduce(comm, send, objects_.at(c["recv"]), count, c["type"], c["op"],
                                send_mr, recv_mr, &r->handle);
  });
  if (!posted && r->handle == nullptr && others_may_have_aborted()) return Status::ok();
  return posted;
}

Status Player::finish(const Request& r, const Json& test) {
  const bool collnet = test["if"] == "collnet";
  int done = 0, size = 0;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kReplayDeadlineMs);
  if (r.handle == nullptr) return Status::ok();  // not even accepted, after an abort
  while (done == 0) {
    const int result =
        collnet ? collnet_->test(r.handle, &done, &size) : net_.test(r.handle, &done, &size);
    if (result != kSuccess && collnet && others_may_have_aborted()) return Status::ok();
    if (result != kSuccess) return plugin_status(result, "test of " + r.call->dump());
    if (done != 0) break;
    if (objects_.failed() || std::chrono::steady_clock::now() > deadline) {
      return timeout_error("does not complete: " + r.call->dump());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const Json& c = *r.call;
  if (collnet) return check_all_reduce(r);
  if (size != test["sizes"][0]) {
    return internal_error("size " + std::to_string(size) + " instead of that of " + test.dump());
  }
  if (c["call"] == "irecv" && !is_message(objects_.at(c["data"][0]), static_cast<std::size_t>(size),
                                          connection_of(r.object), r.index)) {
    return internal_error("wrong contents: " + c.dump());
  }
  return Status::ok();
}

Status Player::check_all_reduce(const Request& r) {
  const Json& c = *r.call;
  const auto [ranks, place] = place_of(r.object);
  const auto type = static_cast<DataType>(c["type"].get<int>());
  const auto op = static_cast<Op>(c["op"].get<int>());
  const std::size_t wrong = count_wrong(objects_.at(c["recv"]), c["count"], type, op, ranks,
                                        static_cast<unsigned>(r.index));
  if (wrong == 0) return Status::ok();
  return internal_error(std::to_string(wrong) + " wrong elements: " + c.dump());
}

}  // namespace riffle::host
