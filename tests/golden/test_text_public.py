"""Names that scripts, suites and notebooks of users hold."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.text_support import (  # noqa: F401
    BUILTINS,
    begin,
    benchmark_of,
    fill,
    load_class,
    shell,
    tmp_path,
)

ROOT = Path(__file__).parents[2]
HEAVY = """
docker flax google.cloud.aiplatform google.protobuf grpc jax jaxlib kfp kubernetes
orbax pandas pyarrow scipy tensorboard tensorflow tensorstore torch
"""
LOADED = f"""
import sys
from orbax_bench_core.cli import main as command_line
heavy = {HEAVY.split()}
known = set()

def loaded(what):
    found = {{name for name in heavy if name in sys.modules}} - known
    known.update(found)
    print(f"{{what}}:", ", ".join(sorted(found)) or "nothing", file=sys.__stderr__)

loaded("the command line")
sys.stdout = open("said.txt", "w")
for line in sys.stdin.read().splitlines():
    sys.argv = ["orbax-bench", *line.split()]
    try:
        command_line.main()
    except SystemExit as end:
        assert not end.code, (line, end.code)
    loaded(line)
"""


def written_texts():
    """Yields what users read and copy: pages, examples, and the files that run our commands."""
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*", "images/**/*", "Makefile", ".ci/*"):
        for file in sorted(ROOT.glob(pattern)):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.read_text(encoding="utf-8")
    yield (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_benchmark_classes(golden):
    """A suite may write `benchmarks.NAME.CLASS` of each built-in, whatever module holds it."""
    lines = []
    for name, path in BUILTINS.items():
        module, _, class_name = path.rpartition(".")
        assert load_class(name) is getattr(importlib.import_module(module), class_name)
        module = f"orbax_bench_core.benchmarks.{name}"
        assert benchmark_of(path) == benchmark_of(f"{module}.{class_name}") == name
        lines.append(f"{name} {module}:{class_name}\n")
    golden("text/public/benchmarks.txt", "".join(lines))


def test_imports_that_are_written_down_work(golden):
    found = set()  # those of the task groups are tried where Airflow is
    for text in written_texts():
        for module, names in re.findall(
            r"^\s*from (orbax_bench_(?!airflow)\w+(?:\.\w+)*) import (\([^)]*\)|[^\n(]+)",
            text,
            re.MULTILINE,
        ):
            for name in re.sub(r"#.*|[()]| as \w+", "", names).split(","):
                if name.strip():
                    found.add(f"{module}:{name.strip()}")
    for path in found:
        module, _, name = path.partition(":")
        assert importlib.import_module(module)
        if not hasattr(sys.modules[module], name):
            assert importlib.import_module(f"{module}.{name}")
    golden("text/public/imports.txt", "".join(f"{path}\n" for path in sorted(found)))


def test_modules_that_are_run_exist(golden):
    pattern = r"(?:-m |\"-m\", \")(orbax_bench_\w+(?:\.\w+)*)"
    found = {name for text in written_texts() for name in re.findall(pattern, text)}
    found |= {"orbax_bench_core.worker"}  # what every launcher starts
    for name in found:
        assert importlib.util.find_spec(name) is not None, name
    golden("text/public/modules.txt", "".join(f"python -m {name}\n" for name in sorted(found)))


@pytest.mark.slow
def test_commands_start_light(shell, begin, fill, golden):
    suite = shell.write(
        "suite.yaml",
        "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {use_ocdbt: [true]}}\n",
    )
    fill(begin(suite, "out"))
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    commands = sorted(re.findall(r"^##+ orbax-bench (.*)$", page, re.MULTILINE))
    assert len(commands) > 25
    lines = [f"{command} --help" for command in commands]
    lines += ["list", "pipeline list", f"expand {suite}", "history out"]
    lines += ["baseline capture reg out --promote", "baseline list reg"]
    lines += [
        "report out",
        "compare reg out",
        "lineage out",
        "calibrate out",
        f"run {suite} -o out --no-lock --no-limits",
        "plan gpt2@0.1 --mesh x=4",
    ]
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=shell.folder,
    )
    assert done.returncode == 0, done.stderr
    golden("text/public/light_start.txt", shell.clean(done.stderr))
