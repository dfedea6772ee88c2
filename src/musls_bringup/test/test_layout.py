"""The workspace keeps its shape: imports point one way, versions and pins agree."""

import ast
import re
import sys
from collections import Counter
from graphlib import TopologicalSorter
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ["musls_description", "musls_control", "musls_sim", "musls_analysis", "musls_bringup"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]

# Only what ROS itself provides; these may be absent, so only nodes and launch files import them.
ROS_ONLY = re.compile(
    r"(rclpy|ament_index_python|launch|launch_ros|px4_msgs|\w+_(msgs|interfaces))$"
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted((ROOT / "src").glob("*/**/*.py"))
MODULES = [path for path in SOURCES if path.relative_to(ROOT / "src").parts[1] in PACKAGES]


def relative(path):
    return str(path.relative_to(ROOT / "src"))


def top_level_imports(path):
    """Returns the top-level names that a module imports, at its top or inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


INSIDE_NUMBA = {"cuda", "core.cgutils", "core.compiler_lock", "core.errors", "core.event"}
"""Modules below numba's documented interface that are used; architecture.md says for what."""


def test_of_numba_only_what_is_listed_is_used():
    inside = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
                module = node.module.partition(".")[2]
                parts = {f"{module}.{alias.name}".strip(".") for alias in node.names}
                inside |= parts & INSIDE_NUMBA or {module}
    assert inside - {"extending", ""} == INSIDE_NUMBA
    page = (ROOT / "docs" / "architecture.md").read_text()
    for name in INSIDE_NUMBA - {"cuda", "core.errors"}:
        assert f"`{name}`" in page, name


def pins(python):
    """Returns what constraints.txt pins for a Python version, {name: version}."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate({"python_version": python}):
            name = canonicalize_name(pin.name)
            assert name not in found, f"{name} is pinned twice for Python {python}"
            (specifier,) = pin.specifier
            assert specifier.operator == "==", line
            found[name] = specifier.version
    return found


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_point_one_way(path):
    package = path.relative_to(ROOT / "src").parts[0]
    higher = set(PACKAGES[PACKAGES.index(package) + 1 :])
    assert not top_level_imports(path) & higher


def test_all_packages_say_that_they_have_types():
    folders = [
        *(ROOT / "src").glob("musls_*/musls_*/__init__.py"),
        ROOT / "src/musls_bringup/musls/__init__.py",
    ]
    assert len(folders) == len(PACKAGES) + 1
    assert all(path.with_name("py.typed").is_file() for path in folders)


def module_name(path):
    """Returns the dotted name of a module of ours."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts[1:]).removesuffix(
        ".__init__"
    )


def own_imports(path, names):
    """Returns the modules of ours that a module imports: at its top, in functions or for types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & names or {node.module}
    return found & names


def test_no_modules_import_each_other_in_a_circle():
    names = {module_name(path): path for path in MODULES}
    graph = {name: own_imports(path, names.keys()) for name, path in names.items()}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_only_nodes_and_launch_files_import_ros(path):
    launches = path.name.endswith(".launch.py") or path.name == "launching.py"
    if "nodes" not in path.parts and not launches:
        assert not {name for name in top_level_imports(path) if ROS_ONLY.match(name)}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_xml_agrees_with_the_project(package):
    manifest = ElementTree.parse(ROOT / "src" / package / "package.xml")
    assert manifest.findtext("name") == package
    assert manifest.findtext("version") == PROJECT["version"]
    assert manifest.findtext("license") == PROJECT["license"]
    own = {dep.text for dep in manifest.iter("exec_depend")} & set(PACKAGES)
    below = PACKAGES.index(package) - 1
    assert own == (set(PACKAGES[below : below + 1]) if below >= 0 else set())


ROSDEP = {
    **{"PIL": "python3-pil", "typing_extensions": "python3-typing-extensions"},
    **{"xacro": "xacro", "rosbags": "python3-rosbags-pip", "pymavlink": "python3-pymavlink-pip"},
    **{name: f"python3-{name}-pip" for name in ("clarabel", "dartpy", "mcap", "zstandard")},
    **{n: f"python3-{n}" for n in ("jinja2", "matplotlib", "numba", "numpy", "pydantic", "rich")},
    **{name: f"python3-{name}" for name in ("scipy", "typer", "yaml")},
}
"""Keys of the modules that are needed; those of ROS are their own keys."""

NOT_NEEDED = {
    "casadi", "dash", "dask", "flask", "gymnasium", "imageio_ffmpeg", "mujoco", "pyarrow", "rerun",
    "werkzeug",
}  # fmt: skip
NOT_NEEDED |= {"mocap4r2_msgs", "musls_interfaces", "onnxruntime", "pettingzoo", "pyulog"}
NOT_NEEDED |= {"onnx", "pandas", "stable_baselines3"}
"""Used where they are installed."""

PART_OF = {
    **{"pydantic_core": "pydantic", "mpl_toolkits": "matplotlib", "llvmlite": "numba"},
    "rerun_cli": "rerun",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_xml_names_all_that_the_package_imports(package):
    manifest = ElementTree.parse(ROOT / "src" / package / "package.xml")
    named = {dep.text for dep in manifest.iter("exec_depend")}
    own = [path for path in MODULES if path.relative_to(ROOT / "src").parts[0] == package]
    imported = {PART_OF.get(n, n) for path in own for n in top_level_imports(path)}
    imported -= {*sys.stdlib_module_names, *PACKAGES, *NOT_NEEDED}
    assert {ROSDEP.get(name, name) for name in imported} <= named
    added = {key for key in named if key not in ROSDEP.values() and key.startswith("python3-")}
    assert not added, "nothing imports these"
    licence = ROOT / "src" / package / "LICENSE"
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_setup_py_agrees_with_the_project(package):
    setup = ast.parse((ROOT / "src" / package / "setup.py").read_text())
    (call,) = [
        node
        for node in ast.walk(setup)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setup"
    ]
    arguments = {keyword.arg: keyword.value for keyword in call.keywords}
    assert ast.literal_eval(arguments["version"]) == PROJECT["version"]
    manifest = ElementTree.parse(ROOT / "src" / package / "package.xml").getroot()
    assert manifest.findtext("version") == PROJECT["version"]
    assert manifest.findtext("license") == PROJECT["license"]
    if package == "musls_bringup":
        scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
        assert ast.literal_eval(arguments["entry_points"]) == {"console_scripts": scripts}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned(python):
    pinned = pins(python)
    extras = PROJECT["optional-dependencies"].values()
    for text in PROJECT["dependencies"] + [dep for extra in extras for dep in extra]:
        dependency = Requirement(text)
        if dependency.name == "musls":  # an extra that names others of ours
            continue
        if dependency.marker is None or dependency.marker.evaluate({"python_version": python}):
            version = pinned.get(canonicalize_name(dependency.name))
            assert version, f"{text} has no pin for Python {python}"
            assert dependency.specifier.contains(version), f"{text} against {version}"


def test_every_installed_dependency_is_pinned():
    pinned = pins(f"{sys.version_info.major}.{sys.version_info.minor}")
    todo = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    seen = set()
    while todo:
        dependency = Requirement(todo.pop())
        name = canonicalize_name(dependency.name)
        if name in seen or (dependency.marker and not dependency.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        try:
            todo += requires(name) or []
        except PackageNotFoundError:
            continue
    assert not seen - set(pinned)


def test_citation_and_changelog_agree_with_the_project():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert latest and latest.group(1) == PROJECT["version"]


def test_pre_commit_runs_the_pinned_tools():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    asked = [text for hook in hooks for text in hook.get("additional_dependencies", [])]
    pinned = pins("3.12")
    assert asked
    assert [f"{name}=={pinned[name]}" for name, _, _ in (a.partition("==") for a in asked)] == asked


def room_of(name):
    """Returns the folder of a package that holds a module, or the module where it lies loose."""
    return name.split(".")[1] if "." in name else ""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_rooms_import_each_other(package):
    names = {module_name(path): path for path in MODULES if "test" not in path.parts}
    rooms = {}
    for name, path in names.items():
        if name.startswith(f"{package}."):
            inside = {n for n in own_imports(path, names.keys()) if n.startswith(f"{package}.")}
            rooms.setdefault(room_of(name), set()).update(map(room_of, inside))
    graph = {room: others - {room} for room, others in rooms.items()}
    assert tuple(TopologicalSorter(graph).static_order())  # raises CycleError


def test_bringup_keeps_every_module_in_a_room():
    folder = ROOT / "src/musls_bringup/musls_bringup"
    assert [path.name for path in folder.glob("*.py")] == ["__init__.py"]


def test_a_folder_is_a_room_of_at_most_twelve():
    loose = Counter(path.parent for path in MODULES if "test" not in path.parts)
    assert {relative(folder): count for folder, count in loose.items() if count > 12} == {}


def test_a_file_name_stands_for_at_most_two_things():
    named = Counter(path.name for path in MODULES if "test" not in path.parts)
    many = {name: count for name, count in named.items() if count > 2}
    assert set(many) <= {"__init__.py", "setup.py"}


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_filters_that_show_warnings_name_their_kind(path):
    # Without it a user reads what numba tells the developers, 5 kB for a record.
    shown = re.findall(r"simplefilter\((\"(?:default|always)\"[^)]*)\)", path.read_text())
    assert "test" in path.parts or all("," in arguments for arguments in shown)
