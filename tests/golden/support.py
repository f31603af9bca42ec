"""Golden data, and the one place where its tests reach into the product's modules."""

import difflib
from pathlib import Path

DATA = Path(__file__).parent / "data"
REWRITE = "pytest tests/golden --rewrite-golden"
MOST_LINES = 60


def check(name: str, text: str, *, rewrite: bool = False) -> None:
    """Fails unless `text` is what the file `name` of the golden data says; or writes it there."""
    file = DATA / name
    if rewrite:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
        return
    # Bytes, since reading text would hide a change of line ends.
    wanted = file.read_bytes().decode() if file.exists() else ""
    if wanted != text:
        raise AssertionError(_difference(name, wanted, text))


def _difference(name: str, wanted: str, found: str) -> str:
    lines = list(
        difflib.unified_diff(
            wanted.splitlines(keepends=True),
            found.splitlines(keepends=True),
            f"tests/golden/data/{name}",
            "found",
            n=2,
        )
    )
    shown = [line.rstrip("\n") for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} more lines")
    hint = f"If this change is meant, run `{REWRITE}` and review the diff."
    return "\n".join([f"{name} differs from the golden data.", *shown, hint])
