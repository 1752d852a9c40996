# `riffle sim` refuses numbers that do not fit, and says which ones do; what fits it plays.
# usage: sim_test.sh RIFFLE
set -eu
riffle=$1

refuses() {  # OPTION VALUE LAST
  code=0
  said=$("$riffle" sim "$1" "$2" 2>&1) || code=$?
  [[ $code == 2 ]] || { echo "sim $1 $2: exit code $code"; exit 1; }
  [[ $said == *"$1"*" $2 "*"$3"* ]] || { echo "sim $1 $2 does not name $2 and $3: $said"; exit 1; }
}

for value in 12345678901234567890123 -1 x; do
  refuses --seeds "$value" 1000000000
  refuses --seed "$value" 4611686018427387903
  refuses --from "$value" 4611686018427387903
  refuses --tick-ns "$value" 1000000000
  refuses --frame-cpu-ns "$value" 1000000000
done
refuses --bytes 12345678901234567890123 1099511627776
refuses --seeds 0 1000000000
refuses --seeds 1000000001 1000000000
"$riffle" sim --seeds 2 --from 4611686018427387903 2>/dev/null |
  grep -q "seeds 4611686018427387903 to 4611686018427387904: 0 broken"
echo ok
