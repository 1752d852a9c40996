// NVRTC, NVIDIA's compiler as a library, found at run time: no header and no link of the CUDA
// toolkit is needed. Any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "topology/base/status.h"

namespace riffle::sparse::cuda {

class Nvrtc {
 public:
  // The library of that path; without one, libnvrtc of CUDA 13 or 12 where the dynamic loader or
  // CUDA_HOME or CUDA_PATH has it. It stays loaded.
  static Result<Nvrtc> open(const std::string& path = "");

  std::string version() const;             // "12.9"
  std::vector<int> architectures() const;  // that it compiles for: 80, 90, ...
  // The kernels for "compute_80" (PTX, as text) or "sm_80" (machine code) and the like; an error
  // has the compiler's messages.
  Result<std::string> compile(const std::string& architecture) const;

 private:
  struct Functions;
  explicit Nvrtc(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  std::shared_ptr<const Functions> functions_;
};

}  // namespace riffle::sparse::cuda
