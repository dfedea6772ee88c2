"""Pages of the site that are made from other sources while it is built."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]


def on_files(files, config):
    """Add the reference of all keys, CONTRIBUTING and CHANGELOG."""
    from musls_bringup.cli.describe import reference_page

    pages = {
        "keys.md": reference_page(),
        "contributing.md": _from_root("CONTRIBUTING.md"),
        "changelog.md": _from_root("CHANGELOG.md"),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def _from_root(name: str) -> str:
    """Text of a file at the root, with its links as seen from docs/."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    return re.sub(r"\]\((CHANGELOG|CONTRIBUTING)\.md", lambda m: f"]({m[1].lower()}.md", text)


def on_page_markdown(markdown, **_):
    """Links to files outside docs/ work in the repository; on the site only their text stays."""
    return re.sub(r"\[([^\]]*)\]\(\.\./(?:src|examples|benchmarks|docker)[^)]*\)", r"\1", markdown)
