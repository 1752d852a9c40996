# `riffle run` starts a command with Riffle's variables and the command's own arguments, and fails
# as env does.
# usage: run_test.sh RIFFLE
set -eu
riffle=$1

expect() {  # GOT WANTED
  [[ $1 == "$2" ]] || { echo "expected $2, got $1"; exit 1; }
}
fails() {  # CODE PATTERN ARGUMENT...
  wanted=$1 pattern=$2 code=0
  shift 2
  said=$("$riffle" run "$@" 2>&1) || code=$?
  expect "$code" "$wanted"
  [[ $said == $pattern ]] || { echo "run $*: $said"; exit 1; }
}

# Every argument arrives: options, Riffle's own words, lists in brackets, nothing at all.
expect "$("$riffle" run -- printf '<%s>' plan --help -n '[a,b]' '' -- --nccl 'two  words')" \
  '<plan><--help><-n><[a,b]><><--><--nccl><two  words>'
expect "$("$riffle" run echo said)" said

expect "$("$riffle" run --nccl 2.27.5 -- printenv NCCL_PROFILER_PLUGIN)" riffle
! "$riffle" run --nccl 2.28.9 -- printenv NCCL_PROFILER_PLUGIN || exit 1
# The same as by eval, in front of what was there; no empty entry where nothing was.
export LD_LIBRARY_PATH=/usr/first:/usr/second
by_eval=$(eval "$("$riffle" env)"; echo "$LD_LIBRARY_PATH")
[[ $by_eval == /*:/usr/first:/usr/second ]] || { echo "eval made $by_eval"; exit 1; }
expect "$("$riffle" run -- printenv LD_LIBRARY_PATH)" "$by_eval"
export LD_LIBRARY_PATH=
expect "$("$riffle" run -- printenv LD_LIBRARY_PATH)" "${by_eval%:/usr/first:/usr/second}"

code=0; "$riffle" run -- sh -c 'exit 7' || code=$?
expect "$code" 7
fails 127 'riffle: no-such-command: *' -- no-such-command
fails 127 'riffle: : *' -- ''
fails 126 'riffle: /: *' -- /
fails 2 'riffle: NCCL release "1.0"*' --nccl 1.0 -- true
fails 2 '*command*required*'
echo ok
