#!/usr/bin/env bash
# Starts one PX4 for each line of px4.list (see musls_bringup/gazebo/files.py) and attaches it to its model in Gazebo.
# When one ends, all end, with exit code 1: a formation cannot fly on without a drone.
set -euo pipefail

flight=$1 # folder of the flight
world=$2  # name of Gazebo's world

prefix=${PX4_PREFIX:-/opt/px4-gazebo}
logs=$flight/px4
export XDG_DATA_HOME=$logs # PX4 puts each instance's parameters and flight logs below
export PX4_GZ_STANDALONE=1 PX4_GZ_WORLD=$world PX4_SYS_AUTOSTART=4001
mkdir -p "$logs"

# The names of its parameters are text in the program; a script in its place has none.
knows() { LC_ALL=C grep -aqP -- "$1\x00" "$prefix/bin/px4"; }
if knows MPC_THR_HOVER; then
    while read -r _ _ parameters; do
        for parameter in $parameters; do
            knows "${parameter%%=*}" && continue
            echo "autopilot.parameters.${parameter%%=*}: this PX4 ($prefix/bin/px4) has no such parameter" >&2
            exit 2
        done
    done <"$flight/px4.list"
fi

pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait' EXIT
trap 'exit 0' INT TERM # asked to stop: that is no failure

while read -r instance model parameters; do
    read -ra parameters <<<"$parameters"
    env "PX4_GZ_MODEL_NAME=$model" "${parameters[@]/#/PX4_PARAM_}" \
        "$prefix/bin/px4" -d -i "$instance" </dev/null >"$logs/$model.log" 2>&1 &
    pids+=("$!")
    echo "PX4 instance $instance flies $model, log $logs/$model.log"
done <"$flight/px4.list"
[ "${#pids[@]}" -gt 0 ] || { echo "$flight/px4.list is empty" >&2; exit 1; }

status=0
wait -n "${pids[@]}" || status=$?
echo "a PX4 ended with code $status; the last lines of all:" >&2
tail -n 5 "$logs"/*.log >&2
exit 1
