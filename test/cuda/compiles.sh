#!/bin/bash
# Translates the kernels for an architecture with the NVRTC that scripts/test has fetched, else with
# the system's. Exit status 77, with the reason, if there is none that knows the architecture.
#
#   compiles.sh COMPILE FETCHED ARCHITECTURE
compile=$1 fetched=$2 architecture=$3
library=$(find "$fetched" -name 'libnvrtc.so.[0-9]*' 2>/dev/null | head -n 1)
if [[ -n $library ]]; then
  "$compile" --library "$library" "$architecture"
  status=$?
  [[ $status == 77 ]] || exit $status
fi
exec "$compile" "$architecture"
