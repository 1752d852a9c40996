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
expect "$(offers riffle metrics --)" --listen
expect "$(offers riffle probe --)" --ssh
expect "$(offers riffle env --format l)" lua
case " $(offers riffle probe --) " in *" --peer "*) echo "--peer is nobody's business"; exit 1 ;; esac
[[ -z $(offers riffle plan --fabric '') ]]  # a file name: left to bash

# The other shells, where they are installed: fish offers, zsh reads.
if command -v fish >/dev/null; then
  expect "$(fish -c "$riffle completion fish | source; complete -C 'riffle pl'" | cut -f1)" plan
  expect "$(fish -c "$riffle completion fish | source; complete -C 'riffle env --format l'" | cut -f1)" lua
fi
if command -v zsh >/dev/null; then
  zsh -n <("$riffle" completion zsh)
fi
expect "$("$riffle" completion zsh | head -n 1)" '#compdef riffle'
grep -q "^    env) _arguments .*'--format\[What reads them\]:value:(sh .* lua .*)'" <("$riffle" completion zsh)
grep -q "^complete -c riffle .* env' -l format -x -a '[a-z. ]* lua [a-z ]*' -d " <("$riffle" completion fish)

page=$("$riffle" man)
for command in plan explain top metrics order probe config doctor env run cluster completion; do
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
for command in plan explain top metrics order probe config doctor env run cluster completion man; do
  "$riffle" "$command" --help | grep -q Example || { echo "$command --help has no example"; exit 1; }
done
# Exit codes: usage.
! "$riffle" plan --no-such-option 2>/dev/null
code=0; "$riffle" plan --no-such-option >/dev/null 2>&1 || code=$?
[[ $code == 2 ]]
code=0; "$riffle" explain /no/such/file >/dev/null 2>&1 || code=$?
[[ $code == 2 ]]
# Errors say whose they are, and what may have been meant; output that does not arrive is one.
says() {  # PATTERN ARGUMENT...: with exit code 2
  pattern=$1 code=0
  shift
  said=$("$riffle" "$@" 2>&1 >/dev/null) || code=$?
  [[ $code == 2 && $said == $pattern ]] || { echo "riffle $*: $code, $said"; exit 1; }
}
says 'riffle: *did you mean doctor?*' dotcor
says 'riffle: *' plan --no-such-option
says 'riffle: *did you mean RIFFLE_STREAMS?' config STREMS
says $'riffle: plan has no option --profle; did you mean --profile?\nriffle: plan --help says more' plan --profle racks8
says 'riffle: probe has no option --pear; did you mean *' probe --pear  # --peer is hidden
says 'riffle: bench has no option --sises; did you mean --sizes?*' bench --sises=1M  # and lacks what is required
says 'riffle: run has no option --ncll; did you mean --nccl?*' run --ncll 2.28.9 -- true
says 'riffle: *not in {*; did you mean json?*' env --format jsn
says 'riffle: *did you mean racks8?*' plan --profile rack8
! "$riffle" probe --pear 2>&1 | grep -q -- --peer || { echo "--peer is offered"; exit 1; }
code=0; said=$("$riffle" config 2>&1 >/dev/full) || code=$?
[[ $code == 1 && $said == 'riffle: cannot write the output: No space left on device' ]] || { echo "$said"; exit 1; }
[[ $("$riffle" version) == "$("$riffle" --version)" ]]
[[ $("$riffle" config STREAMS | head -n 1) == 'RIFFLE_STREAMS = 0' ]]
[[ $(RIFFLE_LANES=4 "$riffle" config --changed | grep -c '^RIFFLE_') == 1 ]]
[[ $("$riffle" plan --help) != *UINT:SIZE* ]] || { echo "help for programmers"; exit 1; }
echo ok
