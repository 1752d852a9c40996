# What bash offers after parts of a command line, and that both manual pages name everything.
# usage: completion_test.sh RIFFLE
set -eu
riffle=$1
source <("$riffle" completion)

# offers WORD...: the line so far, the last word unfinished.
offers() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _riffle
  echo "${COMPREPLY[@]}"
}
expect() {  # GOT PART
  case " $1 " in *" $2 "*) ;; *) echo "expected $2 in: $1"; exit 1 ;; esac
}

expect "$(offers riffle '')" plan
expect "$(offers riffle pl)" plan
expect "$(offers riffle plan --)" --fabric
expect "$(offers riffle plan --bytes 1M --sv)" --svg
expect "$(offers riffle explain --)" --html
expect "$(offers riffle probe --)" --ssh
expect "$(offers riffle env --format l)" lua
case " $(offers riffle probe --) " in *" --peer "*) echo "--peer is nobody's business"; exit 1 ;; esac
[[ -z $(offers riffle plan --fabric '') ]]  # a file name: left to bash

page=$("$riffle" man)
for command in plan explain order probe config doctor env run cluster completion; do
  grep -q "riffle $command" <<<"$page" || { echo "riffle(1) lacks $command"; exit 1; }
done
settings=$("$riffle" man riffle.conf.5)
for knob in RIFFLE_FABRIC RIFFLE_RECORD RIFFLE_TOPOLOGY; do
  grep -q "$knob" <<<"$settings" || { echo "riffle.conf(5) lacks $knob"; exit 1; }
done
# No line may begin with a roff request that does not exist.
! grep -vE "^(\.(TH|SH|SS|TP|PP|nf|fi|br)( |$)|[^.'])" <<<"$page$settings" | grep -q . ||
  { echo "a line that roff would swallow"; exit 1; }
# Colour and help: no escape codes into a pipe; every command has an example.
! "$riffle" plan --profile straggler8 | grep -q $'\033'
for command in plan explain order probe config doctor env run cluster completion man; do
  "$riffle" "$command" --help | grep -q Example || { echo "$command --help has no example"; exit 1; }
done
# Exit codes: usage.
! "$riffle" plan --no-such-option 2>/dev/null
code=0; "$riffle" plan --no-such-option >/dev/null 2>&1 || code=$?
[[ $code == 2 ]]
code=0; "$riffle" explain /no/such/file >/dev/null 2>&1 || code=$?
[[ $code == 2 ]]
echo ok
