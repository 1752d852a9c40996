#include "tools/probe/lead.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "plugin/version.h"
#include "tools/numbers.h"
#include "tools/probe/peer.h"

namespace riffle::tools {
namespace {

constexpr char kSpare[] = "another process of its host takes part";
constexpr int kMarginMs = 3000;  // for answers, once a measurement must be over

struct Part {
  Crew::Member* member;
  PeerHello hello;
};

// The oldest line of a member that takes part.
std::string take_line(Crew::Member& member) {
  std::string line = std::move(member.lines.front());
  member.lines.erase(member.lines.begin());
  return line;
}

// Who takes part, in the order of the crew.
std::vector<Part> muster(Crew& crew, int timeout_ms, bool one_per_host) {
  crew.hear_all(timeout_ms, "waiting for " + counted(crew.members().size(), "host"));
  std::vector<Part> parts;
  std::map<std::string, std::string> machines;  // by their own name: as the user named them
  for (Crew::Member& m : crew.members()) {
    if (!m.absent.empty()) continue;
    const std::string line = take_line(m);
    if (line.starts_with("failed ")) {
      crew.dismiss(m, line.substr(7));
      continue;
    }
    const Result<PeerHello> hello = hello_from_line(line);
    if (!hello) {
      crew.dismiss(m, hello.status().message());
      continue;
    }
    if (hello->version != kVersion) {
      crew.dismiss(m, "runs riffle " + hello->version + ", this is " + kVersion +
                          ": install the same version everywhere");
      continue;
    }
    const auto [known, is_new] = machines.emplace(hello->host, m.name);
    if (!is_new) {
      crew.dismiss(m, one_per_host
                          ? kSpare
                          : "calls itself " + hello->host + " as " + known->second +
                                " does: name a host once, or tell them apart by RIFFLE_NODE_NAME");
      continue;
    }
    parts.push_back({&m, *hello});
  }
  return parts;
}

void order(Crew& crew, const std::vector<Part>& parts, int timeout_ms) {
  PeerOrder order;
  order.timeout_ms = timeout_ms;
  for (const Part& part : parts) order.handles.push_back(part.hello.handle);
  for (const Part& part : parts) {
    crew.tell(*part.member, to_line(order));
    ++order.rank;
  }
}

Status too_few(Crew& crew, std::size_t left) {
  std::string text = "probing needs 2 hosts, " + std::to_string(left) + " came";
  for (const auto& [name, why] : absent_hosts(crew)) text += "\n  " + name + ": " + why;
  const auto spare = std::ranges::count(crew.members(), kSpare, &Crew::Member::absent);
  if (spare > 0) {
    text += "\n  " + counted(static_cast<std::size_t>(spare), "more rank") +
            " of the same host name: hosts with equal names need RIFFLE_NODE_NAME";
  }
  return remote_error(text);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> absent_hosts(const Crew& crew) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Crew::Member& m : crew.members()) {
    if (!m.absent.empty() && m.absent != kSpare) all.emplace_back(m.name, m.absent);
  }
  return all;
}

std::string with_names(const std::string& sentence, const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t at = 0; at < sentence.size();) {
    const std::string rest = sentence.substr(at);
    const char* const words = rest.starts_with("node(s) ") ? "node(s) "
                              : rest.starts_with("node ")  ? "node "
                                                           : nullptr;
    if (words == nullptr) {
      out += sentence[at++];
      continue;
    }
    std::size_t i = std::char_traits<char>::length(words);
    std::string list;
    while (i < rest.size() && std::isdigit(static_cast<unsigned char>(rest[i])) != 0) {
      std::size_t number = 0;
      for (; i < rest.size() && std::isdigit(static_cast<unsigned char>(rest[i])) != 0; ++i) {
        if (number < names.size()) number = 10 * number + static_cast<std::size_t>(rest[i] - '0');
      }
      list += (list.empty() ? "" : ", ") +
              (number < names.size() ? names[number] : "node " + std::to_string(number));
      if (rest.compare(i, 2, ", ") != 0 || i + 2 >= rest.size() ||
          std::isdigit(static_cast<unsigned char>(rest[i + 2])) == 0) {
        break;
      }
      i += 2;
    }
    out += list.empty() ? words : list;
    at += i;
  }
  return out;
}

Result<ProbeFindings> lead_probe(Crew& crew, int timeout_ms, bool one_per_host) {
  Status failure;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::vector<Part> parts = muster(crew, timeout_ms, one_per_host);
    if (parts.size() < 2) return too_few(crew, parts.size());
    order(crew, parts, timeout_ms);
    crew.hear_all(timeout_ms + kMarginMs, "measuring between " + counted(parts.size(), "host"));

    std::vector<std::string> names;
    for (const Part& part : parts) names.push_back(part.hello.host);
    std::optional<ProbeFindings> found;
    std::vector<Crew::Member*> content;  // think that it is over
    bool is_host_lost = false;
    failure = Status::ok();
    for (const Part& part : parts) {
      if (!part.member->absent.empty()) {
        is_host_lost = true;
        continue;
      }
      const std::string line = take_line(*part.member);
      if (line.starts_with("found ")) {
        Result<ProbeFindings> findings = findings_from_json(line.substr(6));
        if (!findings) return findings.status();
        found = std::move(*findings);
      }
      if (line.starts_with("failed ")) {
        if (failure) failure = remote_error(with_names(line.substr(7), names));
      } else {
        content.push_back(part.member);
      }
    }
    // Cut short because of the loss: without the lost host there is more to find.
    if (found && (found->trouble.empty() || !is_host_lost)) {
      found->absent = absent_hosts(crew);
      return std::move(*found);
    }
    if (!is_host_lost) break;
    for (Crew::Member* member : content) crew.tell(*member, "again");
  }
  if (failure) failure = remote_error("the hosts did not come to an end");
  for (const auto& [name, why] : absent_hosts(crew)) {
    failure = remote_error(failure.message() + "\n  " + name + ": " + why);
  }
  return failure;
}

}  // namespace riffle::tools
