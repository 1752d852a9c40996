#!/usr/bin/env bash
# A hook of enroot, for /etc/enroot/hooks.d: mounts the host's /opt/riffle in every container that has none of
# its own. It sets no variable; jobs start with /opt/riffle/bin/riffle run -- COMMAND.
set -euo pipefail

riffle=/opt/riffle

[[ -d $riffle && ! -e $ENROOT_ROOTFS$riffle ]] || exit 0
echo "$riffle x-create=dir,bind,ro,nosuid,nodev,private" >>"$ENROOT_MOUNTS"
