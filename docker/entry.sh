#!/usr/bin/env bash
# Entry point of the image: `musls ...` is the musls command, `node PACKAGE NAME ...` a node of this workspace. `node`,
# `musls ros`, `python` and `ros2` run with ROS 2, PX4's messages and musls set up. Everything else runs without: ROS
# brings parts of Gazebo of its own, and its `gz` does not know `gz sim`.
set -eo pipefail # not -u: the set-up files of ROS read unset variables

set_up_ros() {
    # shellcheck source=/dev/null
    source /opt/ros/jazzy/setup.bash
    # shellcheck source=/dev/null
    source /opt/px4_ros2/install/local_setup.bash
    set_up_musls
}

set_up_musls() {
    # shellcheck source=/dev/null
    source /opt/musls/install/local_setup.bash
}

python=/opt/musls/venv/bin/python
case ${1:-} in
musls)
    if [ "${2:-}" = ros ]; then set_up_ros; else set_up_musls; fi
    exec "$python" -c 'import sys; from musls_bringup.cli import main; sys.exit(main())' "${@:2}"
    ;;
node)
    set_up_ros
    exec "$python" -m "$2.nodes.$3" "${@:4}"
    ;;
python)
    set_up_ros
    exec "$python" "${@:2}"
    ;;
ros2)
    set_up_ros
    ;;
esac
exec "$@"
