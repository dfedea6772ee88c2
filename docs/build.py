"""Builds the documentation site: `python docs/build.py`, or `... serve` to see it while writing.

Zensical reads mkdocs.yml. Its pages are those of this folder and, in build/docs beside them, three
that are made from other sources: the reference of all keys, CONTRIBUTING and CHANGELOG.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "docs"
"""What mkdocs.yml names as `docs_dir`."""

ELSEWHERE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(?:src|examples|benchmarks|docker)[^)]*\)")
"""Links to files outside docs/ work in the repository; on the site only their text stays."""

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]*)\)")


def collect() -> None:
    """Put all pages and pictures into `PAGES`.

    Raises:
        SystemExit: A page shows a picture that is not there.
    """
    from musls_bringup.cli.describe import reference_page

    shutil.rmtree(PAGES, ignore_errors=True)
    unwanted = shutil.ignore_patterns("*.py", "*.sh", "__pycache__")
    shutil.copytree(ROOT / "docs", PAGES, ignore=unwanted)
    (PAGES / "keys.md").write_text(reference_page(), encoding="utf-8")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        text = re.sub(r"\]\((CHANGELOG|CONTRIBUTING)\.md", lambda m: f"]({m[1].lower()}.md", text)
        (PAGES / name.lower()).write_text(text, encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        text = ELSEWHERE.sub(r"\1", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        for picture in PICTURE.findall(text):  # Zensical checks links, but not these
            if not (page.parent / picture).is_file():
                raise SystemExit(f"{page.relative_to(PAGES)}: no picture {picture}")


def main() -> int:
    """Collect the pages and build the site, or serve it; every broken link is an error."""
    collect()
    words = sys.argv[1:] or ["build", "--strict", "--clean"]
    return subprocess.run([sys.executable, "-m", "zensical", *words], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
