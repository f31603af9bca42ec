"""Reading the files that a submission is made of, at the moment that it is submitted."""

from __future__ import annotations

import logging
import sys

from orbax_bench_core.config import LoadedSuite, Problem, UserError, checked_path, parse_suite

STDIN = "-"
_LARGEST_SUITE = 100_000
"""Bytes: a step receives its inputs in one argument of a command, of which Linux takes 128 KiB."""


def read_suite(path: str) -> LoadedSuite:
    """Reads and checks a suite that is about to travel to another machine as text.

    Args:
        path: A local path, a `gs://` URI, or `-` for standard input.

    Raises:
        UserError: It cannot be read, is not a suite, is invalid, or is too long to travel.
    """
    text = sys.stdin.read() if path == STDIN else read_text(path, "suite")
    file = "standard input" if path == STDIN else path
    foreign = _what_else_it_is(text)
    if foreign is not None:
        raise UserError(Problem(f"this is {foreign}, not a suite; give the suite file", file=file))
    loaded = parse_suite(text, file)
    size = len(text.encode())
    if size > _LARGEST_SUITE:
        raise UserError(
            Problem(
                f"the suite has {size} bytes and travels to each step in one argument of a "
                f"command; at most {_LARGEST_SUITE} do, split it",
                file=file,
            )
        )
    return loaded


def read_text(path: str, what: str) -> str:
    """Returns the text of a file.

    Args:
        path: A local path or a `gs://` URI.
        what: What the file should be, for messages.

    Raises:
        UserError: It cannot be read.
    """
    from etils import epath
    from google.auth.exceptions import GoogleAuthError

    quiet = logging.getLogger("gcsfs")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)  # it logs a traceback of its own before it raises
    try:
        text: str = epath.Path(checked_path(path)).read_bytes().decode()
    except UnicodeDecodeError:
        raise UserError(Problem(f"not a text file; a {what} is YAML", file=path)) from None
    except FileNotFoundError:
        raise UserError(
            Problem(f"cannot read the {what}: there is no such file", file=path)
        ) from None
    except (OSError, ImportError, ValueError, GoogleAuthError) as error:
        raise UserError(Problem(f"cannot read the {what}: {error}", file=path)) from None
    finally:
        quiet.setLevel(level)
    return text


def _what_else_it_is(text: str) -> str | None:
    """Returns what a YAML file is that people take for a suite."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return None  # the suite's own reader says where it is broken
    first = documents[0] if documents else None
    if not isinstance(first, dict):
        return None
    if "pipelineInfo" in first or "pipelineSpec" in first:
        return "a compiled pipeline or component"
    if {"apiVersion", "kind"} <= first.keys():
        return f"a Kubernetes {first['kind']}"
    if "executorLabel" in str(first.get("components")) or "implementation" in first:
        return "a compiled component"
    return None
