"""Builds musls_analysis for colcon; pip reads the pyproject.toml at the root instead."""

from setuptools import find_packages, setup

PACKAGE = "musls_analysis"

setup(
    name=PACKAGE,
    version="0.2.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["**/*.j2", "**/*.mplstyle"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
    ],
)
