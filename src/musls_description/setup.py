"""Builds musls_description for colcon; pip reads the pyproject.toml at the root instead."""

from setuptools import find_packages, setup

PACKAGE = "musls_description"

setup(
    name=PACKAGE,
    version="0.2.0",
    description="What a slung-load system is: parameter sets, model writers, spawn geometry.",
    author="The musls authors",
    maintainer="The musls authors",
    maintainer_email="musls@example.org",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={"": ["*.yaml", "**/*.yaml", "**/*.sdf", "**/*.xacro"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml", "LICENSE"]),
        (f"share/{PACKAGE}/xacro", [f"{PACKAGE}/models/parts/cable.xacro"]),
    ],
    zip_safe=False,
)
