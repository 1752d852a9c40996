// The CUDA driver, found at run time: the functions that we call, as NVIDIA documents them. No
// header and no library of CUDA is needed to build this. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "topology/base/status.h"

namespace riffle::sparse::cuda {

struct Driver {
  using Result = int;  // 0: success
  using Device = int;
  using Context = struct ContextOfDriver*;
  using Module = struct ModuleOfDriver*;
  using Function = struct FunctionOfDriver*;
  using Stream = struct StreamOfDriver*;
  using Address = unsigned long long;  // in device memory

  // Values that we use of its enumerations.
  static constexpr int kMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_*
  static constexpr int kMajor = 75;
  static constexpr int kMinor = 76;
  static constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

  Result (*init)(unsigned flags);
  Result (*version)(int* version);  // 1000 * major + 10 * minor
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device_get)(Device*, int ordinal);
  Result (*device_name)(char*, int size, Device);
  Result (*device_attribute)(int*, int attribute, Device);
  Result (*primary_retain)(Context*, Device);
  Result (*primary_release)(Device);
  Result (*context_current)(Context*);
  Result (*context_device)(Device*);  // of the current context
  Result (*context_push)(Context);
  Result (*context_pop)(Context*);
  Result (*module_load)(Module*, const void* image, unsigned options, int* option, void** value);
  Result (*module_unload)(Module);
  Result (*module_function)(Function*, Module, const char* name);
  Result (*allocate)(Address*, std::size_t);
  Result (*release)(Address);
  Result (*copy_in)(Address, const void*, std::size_t, Stream);
  Result (*copy)(Address, Address, std::size_t, Stream);
  Result (*copy_out)(void*, Address, std::size_t, Stream);
  Result (*stream_create)(Stream*, unsigned flags);
  Result (*stream_destroy)(Stream);
  Result (*stream_wait)(Stream);
  Result (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream,
                   void** arguments, void** extra);

  // Once per process; the error says why there is none and stays the same.
  static const riffle::Result<Driver>& get();

  // Ok for 0, else what failed and the driver's words for it.
  Status check(Result result, const char* what) const;
};

}  // namespace riffle::sparse::cuda
