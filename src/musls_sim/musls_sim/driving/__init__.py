"""What moves anchors and winches in time: a scenario's `rig`."""
