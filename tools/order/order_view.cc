#include "tools/order/order_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "tools/numbers.h"
#include "topology/plan/nccl_model.h"

namespace riffle::tools {
namespace {

using nlohmann::json;

int hosts(const OrderView& view) { return static_cast<int>(view.order.size()); }

std::string ring_name(const OrderView& view, const RingsChange& r) {
  if (r.members == hosts(view)) return "ring of all hosts";
  return printed("%d rings of %d at once", hosts(view) / r.members, r.members);
}

std::string ring_text(const OrderView& view) {
  std::string text = printed("\n%-28s %12s %14s %12s  %s\n", "all-reduce", "now", "in this order",
                             "bound", "edges between racks");
  for (const RingsChange& r : view.rings) {
    text +=
        printed("%-28s %12s %14s %12s  %d now, %d in this order\n", ring_name(view, r).c_str(),
                us_text(r.before.slowest.time_us).c_str(), us_text(r.after.slowest.time_us).c_str(),
                us_text(r.bound_us).c_str(), r.before.crossings, r.after.crossings);
  }
  if (hosts(view) > 1) {
    text += printed("%-28s %12s %14s\n", "NCCL's pair of trees",
                    us_text(view.trees_before_us).c_str(), us_text(view.trees_after_us).c_str());
  }
  return text;
}

// "0", or "0-7" where a host has several ranks.
std::string ranks_text(const OrderView& view, int place) {
  const int first = place * view.options.slots, last = first + view.options.slots - 1;
  return std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
}

std::string to_text(const OrderView& view) {
  std::string text = view.headline() + "\n" + ring_text(view) +
                     printed("\n%-12s %-24s %-16s %s\n", "rank", "host", "rack", "place now");
  for (int place = 0; place < hosts(view); ++place) {
    const int node = view.order[place];
    text +=
        printed("%-12s %-24s %-16s %d\n", ranks_text(view, place).c_str(), view.host(place).c_str(),
                view.fabric->racks[view.fabric->nodes[node].rack].name.c_str(), node);
  }
  return text;
}

std::string to_hostfile(const OrderView& view) {
  std::string text;
  for (int place = 0; place < hosts(view); ++place) {
    text += view.host(place) + " slots=" + std::to_string(view.options.slots) + "\n";
  }
  return text;
}

std::string to_rankfile(const OrderView& view) {
  std::string text;
  for (int rank = 0; rank < hosts(view) * view.options.slots; ++rank) {
    text += printed("rank %d=%s slot=%d\n", rank, view.host(rank / view.options.slots).c_str(),
                    rank % view.options.slots);
  }
  return text;
}

std::string to_slurm(const OrderView& view) {
  std::string text;
  for (int rank = 0; rank < hosts(view) * view.options.slots; ++rank) {
    text += view.host(rank / view.options.slots) + "\n";
  }
  return text;
}

std::string to_torchrun(const OrderView& view) {
  std::string text;
  for (int place = 0; place < hosts(view); ++place) {
    text += printed("%s --nnodes=%d --node-rank=%d --master-addr=%s\n", view.host(place).c_str(),
                    hosts(view), place, view.host(0).c_str());
  }
  return text;
}

std::string to_mpijob(const OrderView& view) {
  std::string list, workers;
  for (int place = 0; place < hosts(view); ++place) {
    const std::string& host = view.host(place);
    list += (place > 0 ? "," : "") + host + ":" + std::to_string(view.options.slots);
    workers += printed("  - {index: %d, host: %s}\n", place, json(host).dump().c_str());
  }
  return "hosts: " + json(list).dump() + "\nworkers:\n" + workers;
}

std::string to_json(const OrderView& view) {
  json out = {{"schema", "riffle-order-1"},
              {"headline", view.headline()},
              {"bytes", view.options.bytes},
              {"group", view.options.group},
              {"slots", view.options.slots},
              {"rings", json::array()},
              {"trees", {{"before_us", view.trees_before_us}, {"after_us", view.trees_after_us}}},
              {"order", json::array()}};
  for (const RingsChange& r : view.rings) {
    out["rings"].push_back({{"members", r.members},
                            {"before_us", r.before.slowest.time_us},
                            {"before_limit", r.before.slowest.link},
                            {"before_crossings", r.before.crossings},
                            {"after_us", r.after.slowest.time_us},
                            {"after_limit", r.after.slowest.link},
                            {"after_crossings", r.after.crossings},
                            {"bound_us", r.bound_us}});
  }
  for (int place = 0; place < hosts(view); ++place) {
    const int node = view.order[place];
    out["order"].push_back({{"rank", place * view.options.slots},
                            {"host", view.host(place)},
                            {"rack", view.fabric->racks[view.fabric->nodes[node].rack].name},
                            {"was", node}});
  }
  return out.dump(2) + "\n";
}

// Words of the files above; each host once, as ranks of one host stand together.
Status check_hosts(const OrderView& view, const std::string& format) {
  std::set<std::string> seen;
  for (const NodeLink& node : view.fabric->nodes) {
    if (node.name.empty() || node.name.find_first_of(" \t\"'#,=") != std::string::npos) {
      return invalid_argument("host '" + node.name + "' cannot stand in a " + format +
                              ": accepted are names without blanks, quotes, '#', ',' and '='");
    }
    if (!seen.insert(node.name).second) {
      return invalid_argument("host " + node.name + " is there twice: a " + format +
                              " has each once, --slots says how many ranks it gets");
    }
  }
  return Status::ok();
}

}  // namespace

std::string OrderView::headline() const {
  const RingsChange* slowest = &rings.front();
  double after_us = 0, bound_us = 0;
  for (const RingsChange& r : rings) {
    if (r.before.slowest.time_us > slowest->before.slowest.time_us) slowest = &r;
    after_us = std::max(after_us, r.after.slowest.time_us);
    bound_us = std::max(bound_us, r.bound_us);
  }
  const double before_us = slowest->before.slowest.time_us;
  if (after_us <= 0) return "one host: there is no ring";
  std::string text = printed("%s for %s by NCCL's rings as the hosts are now, limited by %s; ",
                             us_text(before_us).c_str(), bytes_text(options.bytes).c_str(),
                             slowest->before.slowest.link.c_str());
  text += before_us > 1.001 * after_us ? printed("%s in this order, %.2f times as fast",
                                                 us_text(after_us).c_str(), before_us / after_us)
                                       : "no order that was found is faster";
  return text + "; bound " + us_text(bound_us);
}

Result<OrderView> view_order(const Fabric& fabric, const OrderOptions& options) {
  const FabricView seen(fabric);
  auto order = best_rank_order(seen, options.group);
  if (!order) return order.status();
  OrderView view{&fabric, options, std::move(*order), {}};
  std::vector<int> now(view.order.size());
  std::iota(now.begin(), now.end(), 0);
  std::vector<int> sizes = {fabric.size()};
  if (options.group > 1 && options.group < fabric.size()) sizes.push_back(options.group);
  for (const int members : sizes) {
    view.rings.push_back({members, rings_time(seen, now, members, options.bytes),
                          rings_time(seen, view.order, members, options.bytes),
                          rings_bound_us(seen, members, options.bytes)});
  }
  if (fabric.size() > 1) {
    view.trees_before_us = nccl_algorithms(fabric, options.bytes)[1].network_us;
    view.trees_after_us = nccl_algorithms(fabric, options.bytes, view.order)[1].network_us;
  }
  return view;
}

Result<std::string> written(const OrderView& view, const std::string& format) {
  if (format == "text") return to_text(view);
  if (format == "json") return to_json(view);
  if (Status s = check_hosts(view, format); !s) return s;
  if (format == "hostfile") return to_hostfile(view);
  if (format == "rankfile") return to_rankfile(view);
  if (format == "slurm") return to_slurm(view);
  if (format == "torchrun") return to_torchrun(view);
  if (format == "mpijob") return to_mpijob(view);
  return invalid_argument("there is no format " + format);
}

}  // namespace riffle::tools
