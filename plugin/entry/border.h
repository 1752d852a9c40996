// The C border: the one place where our Statuses and exceptions become NCCL's result codes.
//
// Every function that NCCL can call wraps its work in `guard`. Nothing thrown passes it: an
// exception becomes the error of the one call, with one log line. Any thread.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "topology/base/status.h"

namespace riffle::entry {

// "riffle", the name of all our tables: NCCL_NET=riffle selects it.
inline constexpr char kPluginName[] = "riffle";

// Every table's init: log lines go where NCCL says and into RIFFLE_LOG_FILE.
void start_log(abi::LogFn log) noexcept;

// NCCL's code for ours; 0 to 6 only (kTimeout is a remote error for releases before 2.30).
abi::ResultCode nccl_code(Code code);

// Logs what failed in `function` and returns the code for NCCL. Never throws.
abi::ResultCode refuse(const char* function, const Status& status) noexcept;
// The same for calls on a connection that broke before: the thread that noticed has warned already
// (config/fault_log.h), so that a call which only hears of it is worth a line at INFO.
abi::ResultCode refuse_transfer(const char* function, const Status& status) noexcept;
abi::ResultCode refuse(const char* function, Code code, const char* reason) noexcept;

using Refuse = abi::ResultCode (*)(const char*, const Status&) noexcept;

template <Refuse refuse_status = refuse, class Body>  // Status()
abi::ResultCode guard(const char* function, Body&& body) noexcept {
  try {
    const Status status = body();
    return status.is_ok() ? abi::kSuccess : refuse_status(function, status);
  } catch (const std::bad_alloc&) {
    return refuse(function, Code::kSystem, "out of memory");
  } catch (const std::exception& error) {
    return refuse(function, Code::kInternal, error.what());
  } catch (...) {
    return refuse(function, Code::kInternal, "unknown exception");
  }
}

// isend, irecv, iallreduce, test and their like.
template <class Body>
abi::ResultCode guard_transfer(const char* function, Body&& body) noexcept {
  return guard<refuse_transfer>(function, std::forward<Body>(body));
}

}  // namespace riffle::entry

// Tables are data symbols with C linkage; entry/exports.map lists them.
#define RIFFLE_TABLE extern "C" __attribute__((visibility("default"))) constinit const
