# `riffle order` on its command line: what goes where, and errors that name what is accepted.
# usage: order_test.sh RIFFLE
set -eu
riffle=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/net.toml" <<'END'
[default]
rate_mbps = 400
[[rack]]
name = "left"
uplink_mbps = 200
[[rack]]
name = "right"
uplink_mbps = 200
[[node]]
name = "a"
rack = "left"
[[node]]
name = "b"
rack = "right"
[[node]]
name = "c"
rack = "left"
[[node]]
name = "d"
rack = "right"
END

refuses() {  # PART OPTION...: exit code 2, and the message has the part
  part=$1 code=0
  shift
  said=$("$riffle" order "$@" 2>&1 >/dev/null) || code=$?
  [[ $code == 2 ]] || { echo "order $*: exit code $code"; exit 1; }
  [[ $said == *"$part"* ]] || { echo "order $*: no '$part' in: $said"; exit 1; }
}
expect() {  # GOT PART
  [[ $1 == *"$2"* ]] || { echo "expected '$2' in: $1"; exit 1; }
}

said=$("$riffle" order --profile racks8)
expect "$said" "4697.6 ms for 16 MiB"
expect "$said" "1174.4 ms in this order, 4.00 times as fast; bound 1174.4 ms"
expect "$("$riffle" order --profile racks8-ordered)" "no order that was found is faster"
# What a launcher reads is alone on stdout; with -o the gain is there.
[[ $("$riffle" order --fabric "$folder/net.toml" --format slurm 2>/dev/null) == $'a\nc\nb\nd' ]]
expect "$("$riffle" order --fabric "$folder/net.toml" --format slurm 2>&1 >/dev/null)" "2.00 times"
expect "$("$riffle" order --fabric "$folder/net.toml" --format slurm -o "$folder/hosts")" "2.00 times"
[[ $(<"$folder/hosts") == $'a\nc\nb\nd' ]]
# Hosts in another order than the file's.
expect "$("$riffle" order --fabric "$folder/net.toml" --nodes d,b,a,c)" "no order that was found is faster"
[[ $("$riffle" order --fabric "$folder/net.toml" --nodes d,c,b,a --format slurm 2>/dev/null) == $'d\nb\nc\na' ]]

refuses "accepted are 1, 2, 4" --fabric "$folder/net.toml" --group 3
refuses "65536" --fabric "$folder/net.toml" --group 0
refuses "has no node e, it has a, b, c, d" --fabric "$folder/net.toml" --nodes a,e
refuses "a is there twice" --fabric "$folder/net.toml" --nodes a,b,a --format hostfile
refuses "torchrun" --fabric "$folder/net.toml" --format other
refuses "1024" --fabric "$folder/net.toml" --slots 0
refuses "needs --fabric or --profile"
code=0; "$riffle" order --profile racks8 -o "$folder/none/hosts" >/dev/null 2>&1 || code=$?
[[ $code == 1 ]]
echo ok
