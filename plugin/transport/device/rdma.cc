#include "plugin/transport/device/rdma.h"

#include <dlfcn.h>
#include <strings.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace riffle {
namespace {

constexpr char kLibrary[] = "libibverbs.so.1";

bool loads_here(const char* library) {
  void* const handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

// As NCCL reads its numbers: what is none counts as 0.
bool is_set(const std::string& text) {
  errno = 0;
  const long long value = std::strtoll(text.c_str(), nullptr, 0);
  return errno == 0 && value != 0;
}

// By NCCL's own transport. EFA's ports have neither link layer.
bool is_usable(const RdmaPort& p) {
  return p.link_layer == "InfiniBand" || p.link_layer == "Ethernet";
}

void add(const RdmaPort& p, std::string& list) {
  list += (list.empty() ? "" : ", ") + p.device + ":" + std::to_string(p.number) + " (" +
          p.link_layer + ")";
}

}  // namespace

bool is_chosen_hca(const std::string& rule, const std::string& device, int port) {
  const bool excludes = rule.starts_with('^');
  std::string names = rule.substr(excludes ? 1 : 0);
  const bool is_exact = names.starts_with('=');
  if (is_exact) names.erase(0, 1);
  bool has_names = false, matches = false;
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    std::istringstream fields(word);
    std::string name, number;
    std::getline(fields, name, ':');
    std::getline(fields, number, ':');
    if (name.empty()) continue;
    has_names = true;
    const bool has_name = is_exact ? device == name : device.starts_with(name);
    const int wanted = number.empty() ? -1 : std::atoi(number.c_str());
    matches |= has_name && (wanted == -1 || wanted == port);
  }
  return (matches || !has_names) != excludes;
}

namespace {

// `active` ports NCCL's own transport could use, of which it would take the chosen ones.
RdmaFinding find_usable(const RdmaChoice& choice, const std::string& active,
                        const std::string& chosen) {
  if (active.empty()) return {};
  const auto stays = [&](const std::string& why) {
    return RdmaFinding{.text = "RDMA ports are active (" + active + "), but " + why +
                               ": Riffle carries TCP"};
  };
  if (is_set(choice.disabled)) return stays("NCCL_IB_DISABLE=" + choice.disabled);
  if (chosen.empty()) return stays("NCCL_IB_HCA=" + choice.hca + " excludes them");
  if (choice.wish == "tcp") return stays("RIFFLE_NET=tcp");
  if (::strcasecmp(choice.network.c_str(), "riffle") == 0) {
    return stays("NCCL_NET=" + choice.network + " leaves NCCL no other network");
  }
  if (!(choice.loads ? choice.loads(kLibrary) : loads_here(kLibrary))) {
    return stays(std::string(kLibrary) + " does not load");
  }
  return {.is_left_to_nccl = true,
          .text = "RDMA ports that NCCL can use are active: " + chosen +
                  "; the network is left to NCCL's own transport (RIFFLE_NET=tcp: Riffle carries "
                  "TCP all the same, on all nodes alike)"};
}

}  // namespace

RdmaFinding find_rdma(const RdmaChoice& choice) {
  std::string active, chosen, others;
  for (const RdmaPort& p : list_rdma_ports(choice.ports)) {
    if (!p.is_active) continue;
    add(p, is_usable(p) ? active : others);
    if (is_usable(p) && is_chosen_hca(choice.hca, p.device, p.number)) add(p, chosen);
  }
  RdmaFinding found = find_usable(choice, active, chosen);
  if (found.is_left_to_nccl || others.empty()) return found;
  if (!found.text.empty()) found.text += "; ";
  found.text += "RDMA ports are active that only a plugin of their own can use: " + others;
  if (choice.wish != "auto") {
    found.text += "; Riffle carries TCP (RIFFLE_NET=" + choice.wish + ")";
    return found;
  }
  found.passes_ports_by = true;
  found.text +=
      "; Riffle carries all of NET over TCP instead: RIFFLE_NET=ofi (aws-ofi-nccl), next (of "
      "NCCL_NET_PLUGIN's list) or a path keeps the cluster's plugin, RIFFLE_NET=tcp means it so";
  return found;
}

}  // namespace riffle
