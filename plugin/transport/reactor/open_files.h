// Every peer takes descriptors, and many systems allow a process 1024 of them unless it asks.
#pragma once

namespace riffle {

// Raises the limit on open files (RLIMIT_NOFILE) to the one that the administrator set, as NCCL
// does where it bootstraps, but to no more than 2^20: programs that the job starts may close them
// all, one by one. Where that is refused the limit stays. Any thread.
void raise_open_files();

}  // namespace riffle
