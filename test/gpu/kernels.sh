#!/bin/bash
# The sparse library's CUDA kernels: results equal to the processor's, and the speed of selection
# beside that of a copy. Untested on a GPU so far. Needs a GPU and its driver, nothing else of CUDA.
#
#   RIFFLE_SELECT_ON_GPU  the program (default: build/test/cuda/riffle_select_on_gpu)
here=$(cd "$(dirname "$0")" && pwd)
: "${RIFFLE_SELECT_ON_GPU:=$here/../../build/test/cuda/riffle_select_on_gpu}"
[ -x "$RIFFLE_SELECT_ON_GPU" ] ||
  { echo "SKIPPED: no $RIFFLE_SELECT_ON_GPU: build the target riffle_select_on_gpu, or set RIFFLE_SELECT_ON_GPU"; exit 77; }
exec "$RIFFLE_SELECT_ON_GPU" "$@"
