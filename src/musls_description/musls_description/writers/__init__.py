"""Models of a system for other simulators: SDF for Gazebo, Xacro and URDF for ROS."""

from musls_description.writers.sdf import include_files, model_files, single_model_sdf, world_sdf
from musls_description.writers.urdf import urdf_text, xacro_text

__all__ = [
    "include_files",
    "model_files",
    "single_model_sdf",
    "urdf_text",
    "world_sdf",
    "xacro_text",
]
