"""Rigid-link cables on a Gazebo server in this process, the engine `physics.engine: gazebo`."""
