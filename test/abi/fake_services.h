// How tests steer and watch the fake services inside the shared object (fake_services.cc).
#pragma once

#include <cstddef>

namespace riffle {

enum Failure {
  kFailNot,
  kFailNotYet,  // null pointers without an error, requests that are not done
  kFailBadAlloc,
  kFailInt,
  kFailInvariant,
  kFailRuntime,
  kFailInvalidArgument,
  kFailSystem,
  kFailRemote,
  kFailTimeout,
  kFailInternal,
};

enum FakeObject {
  kFakeNetListener,
  kFakeSend,
  kFakeRecv,
  kFakeNetRequest,
  kFakeCollListener,
  kFakeColl,
  kFakeCollRequest,
  kFakeObjects,
};

// Exported with C linkage: every service call from now on ends like this.
using FakeFail = void(Failure how);
// The calls since the last time, one per line: name and arguments.
using FakeTakeCalls = void(char* out, std::size_t size);

}  // namespace riffle
