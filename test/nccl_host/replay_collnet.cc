#include "lab/nccl_host/tables/plugin_call.h"
#include "test/nccl_host/replay_player.h"

namespace riffle::host {

Status Player::collnet_call(const Json& c) {
  const std::string call = c["call"];
  if (collnet_ == nullptr) return internal_error("the library has no COLLNET table loaded");
  auto ok = [&](int result) { return plugin_status(result, "COLLNET " + call); };
  if (Status s = wait_for_transfers(c); !s) return s;
  if (call == "init") return ok(collnet_->init(comm_id(c), &contexts_["coll" + c["comm"].dump()]));
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
    // The recording plugin knew fewer types.
    return yes < c["supported"] ? internal_error("reduceSupport: no to " + c.dump()) : ok(r);
  }
  if (call == "listen") {
    Listening& l = listening_[c["listenComm"]];
    return ok(collnet_->listen(contexts_["coll" + c["comm"].dump()], 0, l.handle.data(), &l.comm));
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

Status Player::collnet_connect(const Json& c) {
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

}  // namespace riffle::host
