// Screen: a page on a terminal that is drawn again and again. The terminal is as before when it
// ends, whether by a key, by SIGINT or by SIGTERM.
#pragma once

#include <termios.h>

#include <string>

namespace riffle::tools {

class Screen {
 public:
  // Standard output must be a terminal. One at a time.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // As many lines as there is room for; what is too long is cut.
  void show(const std::string& page);
  // False: the key q, or a signal, ended it. A change of the terminal's size ends the wait early.
  bool wait(int ms);

 private:
  termios before_{};
  bool has_keys_ = false;  // standard input is a terminal, too
};

}  // namespace riffle::tools
