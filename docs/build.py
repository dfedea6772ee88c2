"""Builds the documentation site: `python docs/build.py`, or `... serve` to see it while writing.

Zensical reads mkdocs.yml. Its pages are those of this folder and, in build/docs beside them, those
that are made from other sources: the reference of all keys, the tables of figures, CONTRIBUTING,
CHANGELOG and SECURITY. Tables within pages are made by made_tables.py.
"""

from __future__ import annotations

import csv
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "docs"
"""What mkdocs.yml names as `docs_dir`."""

ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
}
"""Files of the repository that are pages of the site."""

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./|docs/|[A-Z]+\.md)[^)#\s]*)(#[^)]*)?\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]*)\)")


def collect() -> None:
    """Put all pages and pictures into `PAGES`.

    Raises:
        SystemExit: A page shows a picture, or links to a file, that is not there.
    """
    from musls_bringup.cli.describe import reference_page

    shutil.rmtree(PAGES, ignore_errors=True)
    unwanted = shutil.ignore_patterns("*.py", "*.sh", "__pycache__")
    shutil.copytree(ROOT / "docs", PAGES, ignore=unwanted)
    (PAGES / "keys.md").write_text(reference_page(), encoding="utf-8")
    (PAGES / "tables.md").write_text(_tables_page(), encoding="utf-8")
    filled = runpy.run_path(str(ROOT / "docs" / "made_tables.py"))["filled"]  # run with -I
    sources = {page: ROOT / "docs" / page.relative_to(PAGES) for page in PAGES.rglob("*.md")}
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, PAGES / ELSEWHERE[name])
        sources[PAGES / ELSEWHERE[name]] = ROOT / name
    for page, source in sources.items():
        text = filled(page.read_text(encoding="utf-8"))
        for picture in PICTURE.findall(text):  # Zensical checks links, but not these
            if not (page.parent / picture).is_file():
                raise SystemExit(f"{page.relative_to(PAGES)}: no picture {picture}")
        text = LINK.sub(lambda found, page=page, source=source: _link(found, page, source), text)
        page.write_text(text, encoding="utf-8")


def _link(found: re.Match[str], page: Path, source: Path) -> str:
    """A link as it is on the site: its text alone where the file is no page."""
    words, target, anchor = found[1], (source.parent / found[2]).resolve(), found[3] or ""
    if not target.exists():
        raise SystemExit(f"{source.relative_to(ROOT)}: no file {found[2]}")
    if target.suffix == ".csv":
        place, anchor = PAGES / "tables.md", f"#{target.stem}"
    elif target.is_relative_to(ROOT / "docs"):
        place = PAGES / target.relative_to(ROOT / "docs")
    elif (name := str(target.relative_to(ROOT))) in ELSEWHERE:
        place = PAGES / ELSEWHERE[name]
    else:
        return words
    return f"[{words}]({os.path.relpath(place, page.parent)}{anchor})"


def _tables_page() -> str:
    """The tables that stand as CSV beside the scripts that print them."""
    lines = ["# Tables of figures", "", "Measured on two shared cores, each by the file named."]
    places = ("benchmarks", "examples", "src/musls_bringup/test")
    for path in sorted(path for place in places for path in (ROOT / place).glob("*.csv")):
        source = path.with_suffix(".py")
        if not source.is_file():
            raise SystemExit(f"{path.relative_to(ROOT)}: no script of this name prints it")
        about = source.read_text(encoding="utf-8").splitlines()[0].strip('"# ')
        head, *rows = csv.reader(path.open(encoding="utf-8", newline=""))
        lines += ["", f"## {path.stem}", "", f"`{source.relative_to(ROOT)}`: {about}", ""]
        lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Collect the pages and build the site, or serve it; every broken link is an error."""
    collect()
    words = sys.argv[1:] or ["build", "--strict", "--clean"]
    return subprocess.run([sys.executable, "-m", "zensical", *words], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
