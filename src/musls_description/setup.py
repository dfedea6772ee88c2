"""Builds musls_description for colcon; pip reads the pyproject.toml at the root instead."""

from setuptools import find_packages, setup

PACKAGE = "musls_description"

setup(
    name=PACKAGE,
    version="0.2.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["*.yaml", "**/*.yaml", "**/*.j2", "**/*.xacro"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
        (f"share/{PACKAGE}/xacro", [f"{PACKAGE}/writers/parts/cable.xacro"]),
    ],
)
