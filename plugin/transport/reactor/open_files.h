// Every peer takes descriptors, and many systems allow a process 1024 of them unless it asks.
#pragma once

#include <cstddef>
#include <string>

namespace riffle {

// Raises the limit on open files (RLIMIT_NOFILE) to the one that the administrator set, as NCCL
// does where it bootstraps, but to no more than 2^20: programs that the job starts may close them
// all, one by one. Where that is refused the limit stays. Any thread.
void raise_open_files();

// Empty if the process may open so many more files; else why not, and what to set. Counts the
// entries of /proc/self/fd; empty, too, where that cannot be read. Any thread.
std::string lack_of_open_files(std::size_t more);

}  // namespace riffle
