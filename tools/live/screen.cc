#include "tools/live/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace riffle::tools {
namespace {

// Another buffer, no cursor, no line wraps; and back.
constexpr char kBegin[] = "\033[?1049h\033[?25l\033[?7l";
constexpr char kEnd[] = "\033[?7h\033[?25h\033[?1049l";
constexpr int kUsualRows = 24;

volatile sig_atomic_t is_over = 0;

void end_by_signal(int) { is_over = 1; }
void wake_by_signal(int) {}

// Without SA_RESTART, so that a wait ends.
void on(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

int rows() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kUsualRows;
  return size.ws_row;
}

}  // namespace

Screen::Screen() {
  is_over = 0;
  on(SIGINT, end_by_signal);
  on(SIGTERM, end_by_signal);
  on(SIGHUP, end_by_signal);
  on(SIGWINCH, wake_by_signal);
  has_keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  std::fputs(kBegin, stdout);
}

Screen::~Screen() {
  std::fputs(kEnd, stdout);
  std::fflush(stdout);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) on(signal, SIG_DFL);
}

void Screen::show(const std::string& page) {
  std::string text = "\033[H";
  int left = rows();
  for (std::size_t begin = 0; begin < page.size() && left > 0; --left) {
    const std::size_t end = std::min(page.find('\n', begin), page.size());
    text += page.substr(begin, end - begin) + "\033[K";
    begin = end + 1;
    if (begin < page.size() && left > 1) text += "\r\n";
  }
  std::fputs((text + "\033[J").c_str(), stdout);
  std::fflush(stdout);
}

bool Screen::wait(int ms) {
  if (is_over != 0) return false;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&input, has_keys_ ? 1 : 0, ms);
  if (ready > 0) {
    char key = 0;
    const ssize_t n = read(STDIN_FILENO, &key, 1);
    if (n == 0 || (n < 0 && errno != EINTR)) has_keys_ = false;  // it was closed
    if (n == 1 && (key == 'q' || key == 'Q')) return false;
  }
  return is_over == 0;
}

}  // namespace riffle::tools
