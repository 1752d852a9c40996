// libhwloc 2.9 forgets memory when a recorded machine is damaged. Its leaks are not ours to fix;
// ours still count. Include in one source file of a program that reads such files.
#pragma once

// LeakSanitizer asks for it by this name.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libhwloc.so\n";
}
