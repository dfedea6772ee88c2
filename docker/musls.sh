#!/usr/bin/env bash
# On the host: `docker/musls.sh up --exit-code-from recorder` is `docker compose up ...` with the results owned by you.
# It makes the folder of the results and, for Gazebo's window (`--profile gui`), lends the containers the X server's
# cookie, so that nobody else gets in (no `xhost +`).
set -euo pipefail

here=$(cd -- "$(dirname -- "$0")" && pwd)
export MUSLS_UID=${MUSLS_UID:-$(id -u)} MUSLS_GID=${MUSLS_GID:-$(id -g)}
[ "$MUSLS_UID" != 0 ] || { echo "musls.sh: as root set MUSLS_UID and MUSLS_GID to the owner of the results" >&2; exit 2; }
runs=${MUSLS_RUNS:-$here/../runs}
mkdir -p -- "$runs"
MUSLS_RUNS=$(cd -- "$runs" && pwd)
export MUSLS_RUNS

if [ -n "${DISPLAY:-}" ] && command -v xauth >/dev/null; then
    cookie=$MUSLS_RUNS/.xauth
    (umask 077 && : >"$cookie")
    # ffff: a cookie for any host name, because a container has another one.
    xauth nlist "$DISPLAY" | sed 's/^..../ffff/' | xauth -f "$cookie" nmerge -
fi
exec docker compose -f "$here/compose.yaml" "$@"
