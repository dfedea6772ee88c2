"""Builds musls_control for colcon; pip reads the pyproject.toml at the root instead."""

from setuptools import find_packages, setup

PACKAGE = "musls_control"

setup(
    name=PACKAGE,
    version="0.2.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={
        "": ["*.yaml", "*.html", "*.j2", "**/*.yaml", "**/*.html", "**/*.j2", "**/*.onnx"]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
    ],
    entry_points={  # for `ros2 run`
        "console_scripts": [
            f"{name} = {PACKAGE}.nodes.{name}:main"
            for name in ("agent", "formation", "mocap_relay", "offboard")
        ]
    },
)
