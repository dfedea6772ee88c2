"""Builds musls_bringup for colcon; pip reads the pyproject.toml at the root instead."""

from glob import glob

from setuptools import find_packages, setup

PACKAGE = "musls_bringup"

setup(
    name=PACKAGE,
    version="0.2.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*", "musls"]),
    package_data={
        "": ["py.typed", "*.pyi", "*.yaml", "*.html", "*.j2", "**/*.yaml", "**/*.html", "**/*.j2"]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
        (f"share/{PACKAGE}/launch", glob("launch/*.launch.py")),
        (f"share/{PACKAGE}/params", glob("params/*")),
        (f"share/{PACKAGE}/layouts", glob("layouts/*")),
    ],
    entry_points={"console_scripts": ["musls = musls_bringup.cli:main"]},
)
