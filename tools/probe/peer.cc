#include "tools/probe/peer.h"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "plugin/version.h"
#include "tools/command.h"
#include "tools/probe/crew.h"
#include "tools/probe/measurement.h"

namespace riffle::tools {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxInput = 1 << 20;  // an order for 4,096 hosts

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Lines with our prefix from a descriptor.
class Input {
 public:
  explicit Input(int fd) : fd_(fd) {}
  // Reads what is there; false when it ended, or is no text of ours.
  bool take() {
    char buffer[4096];
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n <= 0 || received_.size() > kMaxInput) return false;
    received_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  std::optional<std::string> next() {
    for (std::size_t end; (end = received_.find('\n')) != std::string::npos;) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      if (line.starts_with(kLinePrefix))
        return line.substr(std::char_traits<char>::length(kLinePrefix));
    }
    return std::nullopt;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string received_;
};

bool say_failed(int out, std::string why) {
  for (char& c : why) {
    if (c == '\n') c = ' ';
  }
  return say(out, "failed " + why);
}

// Waits for `other` (if it is one) or a line; nothing: the input ended or patience did.
enum class Event { kLine, kOther, kEnd };
Event wait_for(Input& input, int other, std::string* line) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(kPeerPatienceMs);
  while (true) {
    if (std::optional<std::string> next = input.next()) {
      *line = std::move(*next);
      return Event::kLine;
    }
    pollfd fds[2] = {{input.fd(), POLLIN, 0}, {other, POLLIN, 0}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = left <= 0 ? 0 : poll(fds, other >= 0 ? 2 : 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Event::kEnd;
    if (other >= 0 && fds[1].revents != 0) return Event::kOther;
    if (fds[0].revents != 0 && !input.take()) return Event::kEnd;
  }
}

Result<std::vector<HandleContent>> contents(const PeerOrder& order) {
  std::vector<HandleContent> all;
  for (const std::string& text : order.handles) {
    const Result<Handle> handle = handle_from_hex(text);
    if (!handle) return handle.status();
    Result<HandleContent> content = decode(*handle);
    if (!content) return content.status();
    all.push_back(std::move(*content));
  }
  return all;
}

// One attempt; false when there will be no other.
bool attempt(Input& input, int out) {
  Result<std::unique_ptr<Measurement>> measurement = Measurement::open();
  std::string line;
  if (!measurement) {
    say_failed(out, measurement.status().message());
    return false;
  }
  if (!say(out, to_line(PeerHello{kVersion, own_node_name(), to_hex((*measurement)->handle())}))) {
    return false;
  }
  if (wait_for(input, -1, &line) != Event::kLine) return false;
  const Result<PeerOrder> order = order_from_line(line);
  if (!order) return say_failed(out, order.status().message());
  Result<std::vector<HandleContent>> handles = contents(*order);
  if (!handles) return say_failed(out, handles.status().message());
  (*measurement)->start(std::move(*handles), order->rank, order->timeout_ms);
  Event event;
  while ((event = wait_for(input, (*measurement)->over_fd(), &line)) == Event::kLine) {
  }
  if (event == Event::kEnd) return false;
  const auto outcome = (*measurement)->outcome();
  if (!outcome) return say_failed(out, outcome.status().message());
  if (!say(out, outcome->has_value() ? "found " + to_json(**outcome) : "done")) return false;
  // The others may still be on their way to the same end: we leave when the coordinator does.
  return wait_for(input, -1, &line) == Event::kLine;
}

}  // namespace

bool say(int out, const std::string& line) {
  const std::string text = kLinePrefix + line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(out, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string to_hex(const Handle& handle) {
  std::string text(2 * handle.bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), handle.bytes.data(), handle.bytes.size());
  text.pop_back();
  return text;
}

Result<Handle> handle_from_hex(const std::string& text) {
  Handle handle;
  std::size_t size = 0;
  if (sodium_hex2bin(handle.bytes.data(), handle.bytes.size(), text.data(), text.size(), nullptr,
                     &size, nullptr) != 0 ||
      size != handle.bytes.size() || text.size() != 2 * size) {
    return remote_error("a connection handle is not " + std::to_string(2 * handle.bytes.size()) +
                        " hexadecimal digits");
  }
  return handle;
}

std::string to_line(const PeerHello& hello) {
  return "hello " +
         dumped({{"version", hello.version}, {"host", hello.host}, {"handle", hello.handle}});
}

std::string to_line(const PeerOrder& order) {
  return "go " +
         dumped(
             {{"rank", order.rank}, {"timeout_ms", order.timeout_ms}, {"handles", order.handles}});
}

Result<PeerHello> hello_from_line(const std::string& line) {
  if (!line.starts_with("hello ")) return remote_error("unexpected answer: " + line.substr(0, 80));
  try {
    const json in = json::parse(line.substr(6));
    PeerHello hello{in.at("version"), in.at("host"), in.at("handle")};
    if (hello.host.empty()) return remote_error("it does not know its name");
    return hello;
  } catch (const json::exception& e) {
    return remote_error(std::string("its answer is not understood: ") + e.what());
  }
}

Result<PeerOrder> order_from_line(const std::string& line) {
  if (!line.starts_with("go ")) return remote_error("unexpected order: " + line.substr(0, 80));
  try {
    const json in = json::parse(line.substr(3));
    PeerOrder order{in.at("rank"), in.at("timeout_ms"),
                    in.at("handles").get<std::vector<std::string>>()};
    const int size = static_cast<int>(order.handles.size());
    if (size < 2 || order.rank < 0 || order.rank >= size || order.timeout_ms < 1 ||
        order.timeout_ms > kMostTimeoutMs) {
      return remote_error("an order for rank " + std::to_string(order.rank) + " of " +
                          std::to_string(size) + " within " + std::to_string(order.timeout_ms) +
                          " ms makes no sense");
    }
    return order;
  } catch (const json::exception& e) {
    return remote_error(std::string("the order is not understood: ") + e.what());
  }
}

int serve_probe(int in, int out) {
  Input input(in);
  while (attempt(input, out)) {
  }
  return 0;
}

}  // namespace riffle::tools
