#!/usr/bin/env bash
# Objects of Kubernetes against its schemas, which kubernetes-validate brings: nothing is asked of a cluster.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages python3-venv
python_tools kubernetes-validate
"$tools/bin/kubernetes-validate" --strict "$root"/deploy/kubernetes/*.yaml
# The check itself: a word that there is not is refused.
sed 's/hostPath:/hostPaths:/' "$root/deploy/kubernetes/daemonset.yaml" >"$work/wrong.yaml"
! "$tools/bin/kubernetes-validate" --strict "$work/wrong.yaml" >/dev/null 2>&1 || fail "a wrong object is taken"
echo "Kubernetes: objects are valid"
