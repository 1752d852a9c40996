#include "tools/live/metrics_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

namespace riffle::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;

constexpr std::size_t kMaxRequestBytes = 16 << 10;
constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

std::optional<tcp::endpoint> endpoint_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string host = address.substr(0, colon);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const char* const begin = address.data() + colon + 1;
  const char* const end = address.data() + address.size();
  const auto [parsed_to, problem] = std::from_chars(begin, end, port);
  boost::system::error_code error;
  const asio::ip::address ip = asio::ip::make_address(host, error);
  if (error || ip.is_v6() != is_bracketed || problem != std::errc() || parsed_to != end) {
    return std::nullopt;
  }
  return tcp::endpoint(ip, port);
}

std::string text_of(const tcp::endpoint& endpoint) {
  std::ostringstream text;
  text << endpoint;
  return text.str();
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const std::function<std::string()>& page)
      : stream_(std::move(socket)), page_(page) {}

  void read() {
    request_ = {};
    stream_.expires_after(std::chrono::seconds(kPatienceS));
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    response_ = http::response<http::string_body>(http::status::ok, request_.version());
    response_.keep_alive(request_.keep_alive());
    response_.set(http::field::content_type, kTextFormat);
    const std::string target(request_.target().data(), request_.target().size());
    if (request_.method() != http::verb::get) {
      response_.result(http::status::method_not_allowed);
      response_.set(http::field::allow, "GET");
      response_.body() = "only GET is answered\n";
    } else if (target.substr(0, target.find('?')) == "/metrics") {
      response_.body() = page_();
    } else {
      response_.result(http::status::not_found);
      response_.body() = "the metrics are at /metrics\n";
    }
    response_.prepare_payload();
    stream_.expires_after(std::chrono::seconds(kPatienceS));
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error) self->answered();
                      });
  }

  void answered() {
    if (response_.keep_alive()) return read();
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  const std::function<std::string()>& page_;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_;
};

void accept_all(tcp::acceptor& acceptor, const std::function<std::string()>& page) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) std::make_shared<Connection>(std::move(socket), page)->read();
    accept_all(acceptor, page);
  });
}

}  // namespace

Status serve_metrics(const std::string& address, const std::function<std::string()>& page,
                     const std::function<void(const std::string& address)>& listening) {
  const std::optional<tcp::endpoint> endpoint = endpoint_of(address);
  if (!endpoint) {
    return invalid_argument("--listen " + address +
                            ": accepted is a numeric address and a port of 0 to 65535, such as "
                            "127.0.0.1:9817 or [::1]:9817");
  }
  asio::io_context context(1);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](beast::error_code, int) { context.stop(); });
  tcp::acceptor acceptor(context);
  try {
    acceptor.open(endpoint->protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(*endpoint);
    acceptor.listen();
  } catch (const boost::system::system_error& e) {
    return system_error("cannot listen on " + address + ": " + e.code().message());
  }
  listening(text_of(acceptor.local_endpoint()));
  accept_all(acceptor, page);
  context.run();
  return Status::ok();
}

}  // namespace riffle::tools
