"""The site: pages of the checkout in one folder, built strictly by zensical.

A page may link to a file of the checkout that is no page, such as a suite in `examples`. That file
becomes a page too, so that the site needs no other place to be whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from website import charts, links

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "pages"
"""Folder in which the pages lie together; `docs_dir` of `mkdocs.yml`."""

_ELSEWHERE: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "license.md",
}
"""Pages that lie outside of `docs`, and where the site has them."""

_LANGUAGES: Final = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
}


def problems() -> list[str]:
    """Returns the broken links of all pages of the checkout."""
    return [fault for page in written_pages() for fault in links.faults(page, ROOT)]


def written_pages() -> list[Path]:
    """Returns every page that people read: at the root, in `docs`, of examples and tools."""
    folders = (ROOT / name for name in ("docs", "examples", "images", "perf", "components"))
    return [
        *sorted(ROOT.glob("*.md")),
        *(page for folder in folders for page in sorted(folder.rglob("*.md"))),
    ]


def gather() -> None:
    """Lays all pages and what they link to into `PAGES`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    waiting = [ROOT / name for name in _ELSEWHERE]
    waiting += [path for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    done: set[Path] = set()
    while waiting:
        source = waiting.pop()
        if source in done:
            continue
        done.add(source)
        target = PAGES / place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() or source.suffix != ".md":
            waiting += _lay(source, target)
            continue
        target.write_text(_moved(source, waiting))


def place_of(source: Path) -> Path:
    """Returns where the site has a file or folder of the checkout, below `PAGES`."""
    inside = source.relative_to(ROOT)
    if inside.parts[:1] == ("docs",) and source.is_file():
        return Path(*inside.parts[1:])
    if str(inside) in _ELSEWHERE:
        return Path(_ELSEWHERE[str(inside)])
    # The site has no place for names that begin with a dot.
    target = Path("source", *(part.lstrip(".") for part in inside.parts))
    if source.is_dir():
        readme = source / "README.md"
        return place_of(readme) if readme.exists() else target / "index.md"
    return target if source.suffix == ".md" else target.with_name(f"{target.name}.md")


def _moved(source: Path, waiting: list[Path]) -> str:
    """Returns a page with links as the site needs them; what they lead to is added to `waiting`."""
    here = place_of(source).parent

    def change(target: str) -> str:
        name, _, anchor = target.partition("#")
        if not name:
            return target
        file = (source.parent / name).resolve()
        if file.is_dir() and (file / "README.md").exists():
            file = file / "README.md"
        waiting.append(file)
        return os.path.relpath(place_of(file), here) + (f"#{anchor}" if anchor else "")

    return charts.drawn(links.rewritten(source.read_text(), change))


def _lay(source: Path, target: Path) -> list[Path]:
    """Makes the page of a folder or of a file that is no page; returns what the page links to."""
    inside = source.relative_to(ROOT)
    if source.is_dir():
        files = [
            file for file in sorted(source.iterdir()) if file.is_file() and file.name[0] != "."
        ]
        folder = target.relative_to(PAGES).parent
        lines = [f"* [`{file.name}`]({os.path.relpath(place_of(file), folder)})" for file in files]
        target.write_text("\n".join([f"# `{inside}`", "", *lines, ""]))
        return files
    if inside.parts[0] == "docs":
        shutil.copyfile(source, target)
    else:
        language = _LANGUAGES.get(source.suffix, "text")
        target.write_text(f"# `{inside}`\n\n````{language}\n{source.read_text().rstrip()}\n````\n")
    return []


def build() -> int:
    """Gathers the pages and builds the site into `dist/site`; returns the exit code."""
    for problem in (found := problems()):
        print(f"error: {problem}", file=sys.stderr)
    if found:
        return 1
    gather()
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=False
    )
    return done.returncode
