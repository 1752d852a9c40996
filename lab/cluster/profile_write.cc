#include <algorithm>

#include "lab/cluster/profile_file.h"

namespace riffle::cluster {
namespace {

std::string line(const char* key, std::int64_t value) {
  return std::string(key) + " = " + std::to_string(value) + "\n";
}

// Names come from profiles or are drawn: no character in them needs an escape but these.
std::string line(const char* key, const std::string& value) {
  std::string quoted;
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return std::string(key) + " = \"" + quoted + "\"\n";
}

std::string rates(const char* both, const char* out, const char* in, const Rates& r) {
  if (r == Rates{}) return "";
  if (r.out_kbps == r.in_kbps) return line(both, r.out_kbps / 1000);
  return line(out, r.out_kbps / 1000) + line(in, r.in_kbps / 1000);
}

std::string uplink(const Rates& r) { return rates("uplink_mbps", "up_mbps", "down_mbps", r); }

// A list of all i below `count` of which `belongs`, as `item` writes them.
template <class Belongs, class Item>
std::string list(const char* key, int count, Belongs belongs, Item item) {
  std::string items;
  for (int i = 0; i < count; ++i) {
    if (belongs(static_cast<std::size_t>(i))) {
      items += (items.empty() ? "" : ", ") + item(static_cast<std::size_t>(i));
    }
  }
  return std::string(key) + " = [" + items + "]\n";
}

std::string number(std::size_t i) { return std::to_string(i); }

std::string settings(const Profile& p) {
  const char* const shapers[] = {"tbf", "htb", "policer"};
  const Shaping usual;
  const Shaping& s = p.shaping;
  std::string text;
  if (p.nics != 1) text += line("nics", p.nics);
  if (p.equal_host_names) text += line("host_names", std::string("equal"));
  if (p.packet_filter) text += "packet_filter = true\n";
  if (s.shaper != usual.shaper) {
    text += line("shaper", std::string(shapers[static_cast<int>(s.shaper)]));
  }
  if (s.queue_ms != 0) text += line("queue_ms", s.queue_ms);
  if (s.queue_bytes != 0) text += line("queue_bytes", s.queue_bytes);
  if (s.burst_bytes != usual.burst_bytes) text += line("burst_bytes", s.burst_bytes);
  if (s.gso_max_bytes != 0) text += line("gso_max_bytes", s.gso_max_bytes);
  return text;
}

// Of all nodes without an exception. Nodes without a limit can have none.
Rates usual_rates(const Profile& p) {
  for (const Rates& r : p.rates) {
    if (r == Rates{}) return r;
  }
  return p.rates[0];
}

// One exception for all nodes that differ alike.
std::string exceptions(const Profile& p) {
  std::string text;
  const Rates usual = usual_rates(p);
  for (auto r = p.rates.begin(); r != p.rates.end(); ++r) {
    if (*r == usual || std::find(p.rates.begin(), r, *r) != r) continue;
    text += "\n[[exception]]\n" +
            list(
                "nodes", p.size(), [&](std::size_t n) { return p.rates[n] == *r; }, number) +
            rates("rate_mbps", "out_mbps", "in_mbps", *r);
  }
  const auto& cpu = p.cpu_percent;
  for (auto c = cpu.begin(); c != cpu.end(); ++c) {
    if (*c == 0 || std::find(cpu.begin(), c, *c) != c) continue;
    text += "\n[[exception]]\n" +
            list(
                "nodes", p.size(), [&](std::size_t n) { return cpu[n] == *c; }, number) +
            line("cpu_percent", *c);
  }
  return text;
}

std::string racks(const Profile& p) {
  std::string text;
  for (std::size_t r = 0; r < p.racks.size(); ++r) {
    const auto inside = [&](std::size_t n) { return p.rack_of[n] == static_cast<int>(r); };
    text += "\n[[rack]]\n" + line("name", p.racks[r].name) +
            list("nodes", p.size(), inside, number) + uplink(p.racks[r].uplink);
  }
  for (std::size_t pod = 0; pod < p.pods.size(); ++pod) {
    const auto inside = [&](std::size_t r) { return p.racks[r].pod == static_cast<int>(pod); };
    const auto name = [&](std::size_t r) { return "\"" + p.racks[r].name + "\""; };
    text += "\n[[pod]]\n" + line("name", p.pods[pod].name) +
            list("racks", static_cast<int>(p.racks.size()), inside, name) +
            uplink(p.pods[pod].uplink);
  }
  return text;
}

}  // namespace

std::string to_toml(const Profile& p) {
  std::string text = line("about", p.about) + line("nodes", p.size()) +
                     rates("rate_mbps", "out_mbps", "in_mbps", usual_rates(p)) + settings(p) +
                     exceptions(p) + racks(p);
  for (const BackgroundFlow& flow : p.flows) {
    text += "\n[[flow]]\n" + line("from", flow.from) + line("to", flow.to) +
            line("rate_mbps", flow.rate_kbps / 1000);
    if (flow.off_ms != 0) text += line("on_ms", flow.on_ms) + line("off_ms", flow.off_ms);
  }
  if (p.neighbour.node >= 0) {
    text += "\n[neighbour]\n" + line("node", p.neighbour.node) +
            line("guaranteed_mbps", p.neighbour.guaranteed_kbps / 1000);
  }
  if (p.fault.node >= 0) {
    text += "\n[fault]\n" + line("node", p.fault.node) + line("after_ms", p.fault.after_ms) +
            "kinds = [";
    for (std::size_t i = 0; i < p.fault.kinds.size(); ++i) {
      text += (i ? ", \"" : "\"") + p.fault.kinds[i] + "\"";
    }
    text += "]\n";
  }
  return text;
}

}  // namespace riffle::cluster
