// Every descriptor of the library, so that a forked child (a data-loader worker) closes them all
// and cannot keep a dead parent's connections alive. Closing, not shutting down: the parent's
// connections go on. Any thread.
#pragma once

#include <cstdint>
#include <functional>

namespace riffle::fork_registry {

// Runs `make` and remembers the descriptor it returns (if not negative) as one step, so that no
// fork falls in between.
int open(const std::function<int()>& make);
// Closes `fd` and forgets it as one step, so that no fork sees a number that was reused.
void close(int fd);

// How many forks lie between this process and the one that loaded the library. An object that
// remembers another number belongs to a parent: its thread does not exist here.
std::uint32_t generation();

}  // namespace riffle::fork_registry
