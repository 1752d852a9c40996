// Compiled as C++14: what nccl-tests' compiler may be asked for.
#include "nccl-tests-patches/src/riffle_check.h"
#include "nccl-tests-patches/src/riffle_gradients.h"
#include "nccl-tests-patches/src/riffle_record.h"
