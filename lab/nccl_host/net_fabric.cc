#include "lab/nccl_host/net_fabric.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "lab/nccl_host/tables/plugin_call.h"

namespace riffle::host {
namespace {

constexpr int kDevice = 0;
constexpr auto kPollPause = std::chrono::microseconds(200);

// What a rank publishes for each of its listening connections.
struct Published {
  int receiver;
  int sender;
  int channel;
  Use use;
  std::array<std::byte, kHandleBytes> handle;
};

}  // namespace

struct NetFabric::Listening {
  Endpoint at;
  void* listen_comm = nullptr;
};

Status NetFabric::listen_and_exchange(Bootstrap& bootstrap, const std::vector<Endpoint>& receives,
                                      std::vector<Listening>* listening,
                                      std::vector<std::byte>* all) {
  std::vector<Published> mine;
  Status failed;
  for (const Endpoint& e : receives) {
    Published p{bootstrap.rank(), e.peer, e.channel, e.use, {}};
    void* comm = nullptr;
    failed = plugin_status(net_.listen(context_, kDevice, p.handle.data(), &comm), "NET listen");
    if (!failed) break;
    listening->push_back({e, comm});
    mine.push_back(p);
  }
  // Ranks may listen on different numbers of connections: agree on the largest, pad with no one's.
  int count = failed ? static_cast<int>(mine.size()) : -1;
  std::vector<int> counts(static_cast<std::size_t>(bootstrap.size()));
  if (Status s = bootstrap.all_gather(&count, counts.data(), sizeof count); !s) return s;
  if (!failed) return failed;
  if (*std::min_element(counts.begin(), counts.end()) < 0) {
    return remote_error("NET listen failed on another rank");
  }
  const auto largest = static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end()));
  mine.resize(largest, Published{-1, -1, -1, Use::kCollective, {}});
  all->resize(largest * sizeof(Published) * static_cast<std::size_t>(bootstrap.size()));
  return bootstrap.all_gather(mine.data(), all->data(), largest * sizeof(Published));
}

Status NetFabric::connect(Bootstrap& bootstrap, const std::vector<Endpoint>& sends,
                          const std::vector<Endpoint>& receives, int deadline_ms) {
  std::vector<Endpoint> new_receives, to_connect;
  for (const Endpoint& e : receives) {
    const bool known = receives_.count(e) != 0 ||
                       std::find(new_receives.begin(), new_receives.end(), e) != new_receives.end();
    if (!known) new_receives.push_back(e);
  }
  for (const Endpoint& e : sends) {
    const bool known = sends_.count(e) != 0 ||
                       std::find(to_connect.begin(), to_connect.end(), e) != to_connect.end();
    if (!known) to_connect.push_back(e);
  }
  std::vector<Listening> to_accept;
  std::vector<std::byte> all;
  if (Status s = listen_and_exchange(bootstrap, new_receives, &to_accept, &all); !s) return s;

  // The plugin may write into the handle, and wants the same buffer at every attempt.
  auto handle_for = [&](const Endpoint& e) -> std::byte* {
    for (std::size_t at = 0; at + sizeof(Published) <= all.size(); at += sizeof(Published)) {
      Published p;
      std::memcpy(&p, all.data() + at, sizeof p);
      if (p.receiver == e.peer && p.sender == bootstrap.rank() && p.channel == e.channel &&
          p.use == e.use) {
        return all.data() + at + offsetof(Published, handle);
      }
    }
    return nullptr;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline_ms);
  while (!to_connect.empty() || !to_accept.empty()) {
    bool moved = false;
    for (auto it = to_connect.begin(); it != to_connect.end();) {
      std::byte* handle = handle_for(*it);
      if (handle == nullptr) {
        return internal_error("rank " + std::to_string(it->peer) + " does not listen on channel " +
                              std::to_string(it->channel));
      }
      void* comm = nullptr;
      if (const int r = net_.connect(context_, kDevice, handle, &comm); r != kSuccess) {
        return plugin_status(r, "NET connect to rank " + std::to_string(it->peer));
      }
      if (comm == nullptr) {
        ++it;
        continue;
      }
      auto link = std::make_unique<SendLink>(net_, bootstrap.rank(), buffer_bytes_);
      const int r = link->attach(comm);
      sends_[*it] = std::move(link);
      if (r != kSuccess) return plugin_status(r, "NET regMr");
      it = to_connect.erase(it);
      moved = true;
    }
    for (auto it = to_accept.begin(); it != to_accept.end();) {
      void* comm = nullptr;
      if (const int r = net_.accept(it->listen_comm, &comm); r != kSuccess) {
        return plugin_status(r, "NET accept from rank " + std::to_string(it->at.peer));
      }
      if (comm == nullptr) {
        ++it;
        continue;
      }
      if (const int r = net_.close_listen(it->listen_comm); r != kSuccess) {
        return plugin_status(r, "NET closeListen");
      }
      auto link = std::make_unique<ReceiveLink>(net_, it->at.peer, buffer_bytes_);
      const int r = link->attach(comm);
      receives_[it->at] = std::move(link);
      if (r != kSuccess) return plugin_status(r, "NET regMr");
      it = to_accept.erase(it);
      moved = true;
    }
    if (moved) continue;
    if (std::chrono::steady_clock::now() > deadline) {
      return timeout_error("NET connections are not up after " + std::to_string(deadline_ms) +
                           " ms: " + std::to_string(to_connect.size()) + " to connect, " +
                           std::to_string(to_accept.size()) + " to accept");
    }
    std::this_thread::sleep_for(kPollPause);
  }
  return Status::ok();
}

Status NetFabric::disconnect() {
  int first_error = kSuccess;
  auto keep = [&](int r) {
    if (first_error == kSuccess) first_error = r;
  };
  for (auto& [at, link] : sends_) keep(link->detach());
  for (auto& [at, link] : receives_) keep(link->detach());
  sends_.clear();
  receives_.clear();
  return plugin_status(first_error, "NET deregMr or close");
}

}  // namespace riffle::host
