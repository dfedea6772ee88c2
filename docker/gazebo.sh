#!/usr/bin/env bash
# Prepares a flight and runs Gazebo, without its window, on its world: gazebo.sh FLIGHT SCENARIO [OPTION ...], with the
# options of musls_bringup/gazebo/run.py. A folder FLIGHT that exists is refused: one container, one flight.
set -euo pipefail

flight=$1 # new folder of the flight
bin=$(dirname -- "$(readlink -f -- "$0")")

"$bin/entry.sh" python -m musls_bringup.gazebo.run --out "$flight" "${@:2}"
exec gz sim -s -r "$flight/world.sdf"
