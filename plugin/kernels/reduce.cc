#include "plugin/kernels/reduce.h"

#include <atomic>
#include <string>

#include "plugin/config/log.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/reduce_kernels.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

ReduceKernel kernel_of(Isa isa, DataType type, ReduceOp op) {
  switch (isa) {
    case Isa::kPortable:
      return portable_kernel(type, op);
    case Isa::kAvx2:
      return avx2_kernel(type, op);
    case Isa::kAvx512:
      return avx512_kernel(type, op);
    case Isa::kNeon:
      return neon_kernel(type, op);
  }
  return nullptr;
}

Isa choose(const std::string& wanted) {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    const bool allowed = wanted == "best" || wanted == name_of(isa) ||
                         (isa == Isa::kAvx2 && wanted == name_of(Isa::kAvx512));
    if (!allowed || !is_available(isa)) continue;
    if (wanted != "best" && wanted != name_of(isa)) {
      log_warn("RIFFLE_ISA={}: this processor has no {}; using {}", wanted, wanted, name_of(isa));
    }
    return isa;
  }
  if (wanted != "best" && wanted != name_of(Isa::kPortable)) {
    log_warn("RIFFLE_ISA={}: this processor has no {}; using portable", wanted, wanted);
  }
  return Isa::kPortable;
}

std::atomic<Isa>& isa_in_use() {
  static std::atomic<Isa> isa{choose("best")};
  return isa;
}

}  // namespace

void limit_isa(const std::string& wanted) {
  isa_in_use().store(choose(wanted), std::memory_order_relaxed);
}

Isa best_isa() { return isa_in_use().load(std::memory_order_relaxed); }

bool is_available(Isa isa) {
  return processor_has(isa) && kernel_of(isa, DataType::kInt8, ReduceOp::kSum) != nullptr;
}

void reduce(void* dst, std::span<const void* const> sources, std::size_t count, DataType type,
            ReduceOp op) {
  reduce_with(best_isa(), dst, sources, count, type, op);
}

void reduce_with(Isa isa, void* dst, std::span<const void* const> sources, std::size_t count,
                 DataType type, ReduceOp op) {
  RIFFLE_CHECK(!sources.empty(), "a reduction needs an operand");
  const ReduceKernel kernel = kernel_of(isa, type, op);
  RIFFLE_CHECK(kernel != nullptr, "unknown type or operation, or no such instruction set here");
  const DefaultFloatEnvironment environment;
  kernel(dst, sources.data(), sources.size(), count);
}

}  // namespace riffle
