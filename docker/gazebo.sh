#!/usr/bin/env bash
# Prepares a flight and runs Gazebo, without its window, on its world: gazebo.sh FLIGHT SCENARIO [OPTION ...], with the
# options of musls_bringup/gazebo/__main__.py. A folder FLIGHT that exists is kept: the new one is FLIGHT_2, FLIGHT_3, ...
# The link .flight beside it leads the other services to the flight.
set -euo pipefail

wanted=$1 # folder of the flight
bin=$(dirname -- "$(readlink -f -- "$0")")

flight=$wanted
for ((n = 2; ; n++)); do
    [ -e "$flight" ] || break
    flight=${wanted}_$n
done
rm -f -- "$(dirname -- "$wanted")/.flight"
"$bin/entry.sh" python -m musls_bringup.gazebo --out "$flight" "${@:2}"
ln -sfn -- "$(basename -- "$flight")" "$(dirname -- "$wanted")/.flight"
echo "the flight is recorded in $flight"
exec gz sim -s -r "$flight/world.sdf"
