# `riffle order` on its command line: what goes where, and errors that name what is accepted.
# usage: order_test.sh RIFFLE PYTHON
set -eu
riffle=$1 python=$2
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

# The network that a job found: two racks that its hosts alternate between; of its plans the last counts.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$0") "$python" - "$folder" <<'END'
import copy, sys
import made_record
nominal = made_record.MadeRecord(sys.argv[1] + "/nominal")
nominal.line(0, "comm", size=3, hosts=made_record.HOSTS)
nominal.plan(0, fabric=made_record.FABRIC | {"nominal": True})
record = made_record.MadeRecord(sys.argv[1] + "/record")
made_record.HOSTS[:] = ["a", "b", "c", "d"]
fabric = {"latency_us": 50, "racks": [{"name": name, "up_kbps": 200000, "down_kbps": 200000} for name in ("left", "right")],
          "nodes": [{"name": host, "rack": at % 2, "out_kbps": 400000, "in_kbps": 400000}
                    for at, host in enumerate(made_record.HOSTS)]}
even = copy.deepcopy(fabric)
for rack in even["racks"]:
    rack["up_kbps"] = rack["down_kbps"] = 0
record.line(0, "comm", size=4, hosts=made_record.HOSTS)
record.plan(0, fabric=even)
record.seconds = 9
record.plan(0, fabric=fabric, from_chunk=5)
END
[[ $("$riffle" order --record "$folder/record" --format slurm 2>/dev/null) == $'a\nc\nb\nd' ]]

refuses "$folder/nominal: no plan in the record says what the rates of its network are" --record "$folder/nominal"
refuses "no record of Riffle" --record "$folder"
refuses "excludes" --record "$folder/record" --profile racks8
refuses "it takes --fabric" --profile racks8 --nodes node0,node1
refuses "accepted are 1, 2, 4" --fabric "$folder/net.toml" --group 3
refuses "65536" --fabric "$folder/net.toml" --group 0
refuses "has no node e, it has a, b, c, d" --fabric "$folder/net.toml" --nodes a,e
refuses "a is there twice" --fabric "$folder/net.toml" --nodes a,b,a --format hostfile
refuses "torchrun" --fabric "$folder/net.toml" --format other
refuses "1024" --fabric "$folder/net.toml" --slots 0
refuses "needs --fabric, --profile or --record"
code=0; "$riffle" order --profile racks8 -o "$folder/none/hosts" >/dev/null 2>&1 || code=$?
[[ $code == 1 ]]
echo ok
