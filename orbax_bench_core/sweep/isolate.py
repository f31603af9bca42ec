"""Expansion in a process of its own, so that benchmark classes stay out of this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from orbax_bench_core.config import ARMS, KeyPath, LoadedSuite, SuiteError
from orbax_bench_core.errors import Problem
from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.expansion import Expansion, expand_here


def expand(loaded: LoadedSuite, *, imports: bool = True) -> Expansion:
    """Expands a suite, without importing JAX or anyone's module into this process.

    Built-in benchmarks keep their heavy imports inside functions and are expanded here. Any other
    class may import JAX, hold a TPU or crash, so a process of its own looks at it.
    """
    generators: dict[KeyPath, str] = {
        ("benchmarks", index, "generator"): entry.generator
        for index, entry in enumerate(loaded.suite.benchmarks)
    }
    for name in ARMS:
        if given := loaded.suite.arm(name).generator:
            generators["arms", name, "generator"] = given
    others = {
        where: path
        for where, generator in generators.items()
        if "." in (path := catalog.benchmark_of(generator))
    }
    if not others:
        return expand_here(loaded)
    if not imports:
        raise SuiteError(
            *(
                loaded.source.problem(
                    f"{path!r} is no built-in, so its options are known to its module alone, which "
                    "--no-import does not import: read it first",
                    where,
                )
                for where, path in others.items()
            )
        )
    with tempfile.TemporaryFile() as answer_file:  # has no name, so that a kill leaves none
        process = subprocess.run(
            [sys.executable, "-m", "orbax_bench_core.sweep", f"/dev/fd/{answer_file.fileno()}"],
            pass_fds=[answer_file.fileno()],
            input=json.dumps({"text": loaded.text, "file": loaded.source.file}),
            capture_output=True,
            text=True,
            env=benchmark_environment(loaded.source.file),
            check=False,
        )
        written = answer_file.read()
        if not written:
            last_lines = "\n".join(process.stderr.strip().splitlines()[-3:])
            raise SuiteError(
                Problem(
                    "the process that imports the benchmark classes ended with code "
                    f"{process.returncode}: {last_lines or 'it printed nothing'}",
                    file=loaded.source.file,
                )
            )
    answer = json.loads(written)
    if "problems" in answer:
        raise SuiteError(*(Problem(**problem) for problem in answer["problems"]))
    expansion = Expansion.model_validate_json(answer["expansion"])
    return expansion.model_copy(update={"files": answer["files"]})


def benchmark_environment(suite_file: str) -> dict[str, str]:
    """Returns the environment in which a suite's benchmark classes can be imported.

    A class may lie beside `suite_file`.
    """
    places = [os.environ.get("PYTHONPATH", "")]
    folder = suite_folder(suite_file)
    if folder is not None:
        places.insert(0, str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def suite_folder(suite_file: str) -> Path | None:
    """Returns the folder in which a suite lies; None for one that has no folder on this machine."""
    if not suite_file or "://" in suite_file:
        return None
    return Path(suite_file).resolve().parent
