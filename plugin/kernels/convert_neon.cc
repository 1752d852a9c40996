#include "plugin/kernels/convert_kernels.h"

#if defined(__aarch64__)
#include "plugin/kernels/neon.h"

namespace riffle::rules {
ConvertKernels neon_converters() { return converters_of<Neon>(); }
}  // namespace riffle::rules

#else

namespace riffle::rules {
ConvertKernels neon_converters() { return {}; }
}  // namespace riffle::rules

#endif
