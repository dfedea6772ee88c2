#!/usr/bin/env bash
# Health of a service: 0 if it is ready. `gazebo WORLD`, `agent PORT` or `px4 FLIGHT`.
set -euo pipefail

case $1 in
gazebo) # what PX4 waits for
    [[ $(gz service -i --service "/world/$2/scene/info" 2>&1) == *"Service providers"* ]]
    ;;
agent) # somebody has bound the UDP port; the second column is the local address
    awk -v port="$(printf ':%04X' "$2")" '$2 ~ port "$" { found = 1 } END { exit !found }' /proc/net/udp
    ;;
px4) # every instance has passed its checks
    while read -r _ model _; do
        grep -q "Ready for takeoff" "$2/px4/$model.log"
    done <"$2/px4.list"
    ;;
*)
    echo "healthy.sh: unknown service $1" >&2
    exit 2
    ;;
esac
