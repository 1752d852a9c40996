#include "plugin/collective/elastic/recovery_messages.h"

#include <algorithm>
#include <map>

#include "plugin/collective/base/byte_io.h"

namespace riffle {
namespace {

Status mangled_recovery(const char* what) {
  return remote_error(std::string("after a loss: mangled ") + what);
}

std::uint64_t as_number(std::int64_t v) { return static_cast<std::uint64_t>(v); }

std::int64_t as_rate(std::uint64_t v) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(v, 1ull << 40));
}

void put_mode(ByteWriter* w, const ModeSpan& mode) {
  w->number(mode.begin);
  w->number(mode.end);
}

ModeSpan get_mode(ByteReader* reader) {
  ModeSpan mode;
  mode.begin = reader->number();
  mode.end = reader->number();
  return mode;
}

// Modes are numbered by the calls they begin with.
void add_mode(ModeSpan* latest, const ModeSpan& mode) {
  const auto order = [](const ModeSpan& m) { return m.begin + 1; };  // kNone: before all others
  if (order(mode) > order(*latest)) {
    *latest = mode;
  } else if (mode.begin == latest->begin) {
    latest->end = std::min(latest->end, mode.end);
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const WorkAccount& account) {
  ByteWriter w;
  w.number(account.done);
  w.number(account.begun);
  w.number(account.unrepeatable.size());
  for (const std::uint64_t operation : account.unrepeatable) w.number(operation);
  put_mode(&w, account.mode);
  return w.take();
}

Result<WorkAccount> decode_account(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  WorkAccount account;
  account.done = reader.number();
  account.begun = reader.number();
  for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
    account.unrepeatable.push_back(reader.number());
  }
  account.mode = get_mode(&reader);
  if (!reader.is_complete()) return mangled_recovery("account");
  return account;
}

std::vector<std::uint8_t> encode(const RecoveryOrder& order) {
  ByteWriter w;
  w.blob(order.problem);
  w.number(order.final_below);
  w.number(order.begun_below);
  put_mode(&w, order.mode);
  w.blob(order.plans);
  w.number(order.digest);
  return w.take();
}

Result<RecoveryOrder> decode_order(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  RecoveryOrder order;
  order.problem = reader.text();
  order.final_below = reader.number();
  order.begun_below = reader.number();
  order.mode = get_mode(&reader);
  order.plans = reader.blob<std::vector<std::uint8_t>>();
  order.digest = reader.number();
  if (!reader.is_complete()) return mangled_recovery("order");
  return order;
}

std::vector<std::uint8_t> encode(const PlanBasis& basis) {
  ByteWriter w;
  w.number(basis.is_nominal ? 1 : 0);
  w.number(as_number(basis.message_ns));
  w.number(as_number(basis.small_message_ns));
  w.number(as_number(basis.fabric.latency_us));
  w.number(basis.fabric.rack_latency_us ? 1 : 0);
  w.number(as_number(basis.fabric.rack_latency_us.value_or(0)));
  w.number(basis.fabric.racks.size());
  for (const RackLink& rack : basis.fabric.racks) {
    w.number(as_number(rack.up_kbps));
    w.number(as_number(rack.down_kbps));
  }
  w.number(basis.fabric.nodes.size());
  for (const NodeLink& node : basis.fabric.nodes) {
    w.number(as_number(node.out_kbps));
    w.number(as_number(node.in_kbps));
    w.number(static_cast<std::uint64_t>(node.rack));
  }
  return w.take();
}

Result<PlanBasis> decode_basis(const std::vector<std::uint8_t>& bytes, int nodes) {
  ByteReader reader(bytes);
  PlanBasis basis;
  basis.is_nominal = reader.number() != 0;
  basis.message_ns = as_rate(reader.number());
  basis.small_message_ns = as_rate(reader.number());
  basis.fabric.latency_us = as_rate(reader.number());
  const bool has_rack_latency = reader.number() != 0;
  const std::int64_t rack_latency_us = as_rate(reader.number());
  if (has_rack_latency) basis.fabric.rack_latency_us = rack_latency_us;
  for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
    RackLink rack;
    rack.name = std::to_string(basis.fabric.racks.size());
    rack.up_kbps = as_rate(reader.number());
    rack.down_kbps = as_rate(reader.number());
    basis.fabric.racks.push_back(rack);
  }
  for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
    NodeLink node;
    node.name = std::to_string(basis.fabric.nodes.size());
    node.out_kbps = as_rate(reader.number());
    node.in_kbps = as_rate(reader.number());
    node.rack = static_cast<int>(std::min<std::uint64_t>(reader.number(), kMaxNodes));
    basis.fabric.nodes.push_back(node);
  }
  if (!reader.is_complete() || basis.fabric.size() != nodes) return mangled_recovery("fabric");
  if (const Status s = validate(basis.fabric); !s) return s;
  return basis;
}

RecoveryOrder order_of(const std::vector<WorkAccount>& accounts) {
  RecoveryOrder order;
  order.final_below = accounts.front().done;
  for (const WorkAccount& a : accounts) {
    order.final_below = std::min(order.final_below, a.done);
    order.begun_below = std::max(order.begun_below, a.begun);
    add_mode(&order.mode, a.mode);
  }
  for (const WorkAccount& a : accounts) {
    for (const std::uint64_t operation : a.unrepeatable) {
      if (operation < order.final_below) continue;
      order.problem = "call " + std::to_string(operation) +
                      " cannot be repeated without the lost nodes: its input was overwritten in "
                      "place, and no copy of it was kept (RIFFLE_KEEP_BYTES)";
      return order;
    }
  }
  return order;
}

PlanBasis restrict_to(const PlanBasis& basis, const std::vector<int>& nodes) {
  PlanBasis result;
  result.is_nominal = basis.is_nominal;
  result.message_ns = basis.message_ns;
  result.small_message_ns = basis.small_message_ns;
  result.fabric.latency_us = basis.fabric.latency_us;
  result.fabric.rack_latency_us = basis.fabric.rack_latency_us;
  std::map<int, int> rack_of;  // new numbers
  for (const int node : nodes) {
    NodeLink link = basis.fabric.nodes[static_cast<std::size_t>(node)];
    const auto [rack, is_new] =
        rack_of.emplace(link.rack, static_cast<int>(result.fabric.racks.size()));
    if (is_new) {
      result.fabric.racks.push_back(basis.fabric.racks[static_cast<std::size_t>(link.rack)]);
      result.fabric.racks.back().number = link.rack;
    }
    link.number = node;
    link.rack = rack->second;
    result.fabric.nodes.push_back(std::move(link));
  }
  return result;
}

}  // namespace riffle
