"""The command as a whole: its help, and what becomes of a user's mistake."""

import errno
import http.server
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from orbax_bench_core.cli.command_table import COMMANDS
from orbax_bench_core.cli.main import run_command_line
from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.sweep import expand
from tests.support.loopback import answering
from tests.support.processes import run_cli


def test_help_has_every_command_once_below_what_it_is_for(orbax_bench):
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", orbax_bench("--help").out, re.MULTILINE)
    assert len(set(listed)) == len(listed)
    assert set(listed) >= set(COMMANDS)


def test_alone_it_shows_what_people_do_first_by_a_suite_that_is_whole(orbax_bench):
    outcome = orbax_bench()
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    text = outcome.out.split("\n\n")[3]
    assert len(expand(parse_suite(textwrap.dedent(text))).points) == 4


def test_versions_are_those_that_a_result_depends_on(orbax_bench):
    outcome = orbax_bench("--version")
    assert outcome.code == 0
    for name in ("orbax-bench", "orbax-checkpoint", "jax", "tensorstore"):
        assert f"{name} {importlib.metadata.version(name)}" in outcome.out


@pytest.mark.parametrize("group", [(), ("baseline",), ("pipeline",)])
def test_help_says_what_each_command_does_in_whole_sentences(orbax_bench, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "80")
    lines = orbax_bench(*group, "--help").out.splitlines()
    assert [line for line in lines[1:] if line.endswith("...")] == []


@pytest.mark.slow
def test_a_shell_completes_commands(tmp_path):
    environment = {
        **os.environ,
        "_ORBAX_BENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": "orbax-bench bi",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        ["orbax-bench"],
        executable=Path(sys.executable).with_name("orbax-bench"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["bisect"], done.stderr


def test_of_a_suite_with_mistakes_nothing_is_begun(orbax_bench, write_suite, tmp_path):
    suite = write_suite(extra="num_repeats: 0\nexecution: {order: random}\n")
    outcome = orbax_bench("run", suite, "--output-directory", tmp_path / "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert len(outcome.err.splitlines()) == 2
    assert not (tmp_path / "out").exists()


def test_an_output_directory_that_orbax_would_misread_is_refused(orbax_bench, write_suite):
    outcome = orbax_bench("run", write_suite(), "--output-directory", "s3://bucket/run")
    assert outcome.code == 2
    assert "would put s3:// data into a local folder" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("module", ["orbax_bench_core.cli", "orbax_bench_core.run_benchmarks"])
def test_the_command_is_also_a_module(module):
    process = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: " in process.stdout


@pytest.mark.parametrize("words", [("report", "gs://b/run"), ("run", "gs://b/s.yaml", "-o", "x")])
def test_a_bucket_that_cannot_be_reached_is_one_line_at_once(orbax_bench, monkeypatch, words):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    outcome = orbax_bench(*words)
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"error: {words[1]}: Cloud Storage cannot be reached at 127.0.0.1:1: ")


@pytest.mark.parametrize(
    "words",
    [
        ("lineage", "gs://nobodys/run"),
        ("inspect", "gs://nobodys/checkpoint"),
        ("run", "gs://nobodys/suite.yaml", "-o", "out"),
        ("baseline", "list", "gs://nobodys/registry"),
        ("step", "aggregate", "-o", "gs://nobodys/run"),
        ("pipeline", "run", "gs://nobodys/suite.yaml", "-o", "out"),
        ("run", "SUITE", "-o", "out", "--no-lock"),
        ("step", "generate-checkpoint", "SUITE"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_bucket_without_credentials_is_one_line(
    orbax_bench, monkeypatch, tmp_path, write_suite, words
):
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # the service is not asked
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.chdir(tmp_path)
    suite = write_suite()
    suite.write_text(suite.read_text() + "checkpoint_config: {path: gs://nobodys/checkpoint}\n")
    outcome = orbax_bench(*(suite if word == "SUITE" else word for word in words))
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert "No credentials for Cloud Storage: run `gcloud auth application-default login`" in line
    assert "gs://nobodys" in line


def test_a_long_message_is_cut_to_a_screen(orbax_bench, write_suite):
    extra = "".join(f"{'k' * 80}{number}: 1\n" for number in range(300))
    outcome = orbax_bench("expand", write_suite(extra=extra))
    assert outcome.code == 2
    assert len(outcome.err) < 2_500
    assert outcome.err.splitlines()[-1].startswith("error: and ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "s.yaml", "-o", "out", "--metrics", "x" * 5_000), "'all', 'changed', 'none'."),
        (("history", "runs", "--every", "--no" * 2_000), "No such option"),
        (("baseline", "list", "registry", "x" * 5_000), "unexpected extra argument"),
        (("x" * 5_000,), "No such command"),
    ],
)
def test_so_is_what_the_parser_says_of_a_long_word(orbax_bench, words, said):
    outcome = orbax_bench(*words)
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err) < 2_200


@pytest.mark.parametrize("command", ["site", "inspect", "expand", "report"])
@pytest.mark.parametrize("uri", ["ftp://host/x", "s3://bucket/x"])
def test_a_place_that_nothing_here_reads_is_one_message(orbax_bench, command, uri):
    outcome = orbax_bench(command, uri)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert uri in outcome.err
    assert "local paths and gs:// only" in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "/proc/none/x"),
            2,
            "/proc/none/x: No such file or directory",
        ),
        (
            ConnectionResetError(104, "Connection reset by peer"),
            1,
            "ConnectionResetError: Connection reset by peer",
        ),
        (MemoryError(), 1, "out of memory: free some, or take a smaller suite"),
    ],
    ids=["a file that cannot be used", "an error that names no file", "memory that is used up"],
)
def test_what_the_system_refuses_is_one_message(run_main, error, code, said):
    def command():
        raise error

    outcome = run_main(lambda: run_command_line(command))
    assert (outcome.code, outcome.err) == (code, f"error: {said}\n")


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError("x"), OSError("no number")])
def test_a_bug_of_ours_has_its_traceback(error):
    def command():
        raise error

    with pytest.raises(type(error)):
        run_command_line(command)


def test_what_a_terminal_would_obey_is_written_out(orbax_bench, write_suite):
    outcome = orbax_bench("expand", "a\x1b[31mred.yaml")
    assert outcome.err.startswith("error: a\\x1b[31mred.yaml: no such file")
    assert "\x1b" not in outcome.err
    outcome = orbax_bench("expand", write_suite(options='{use_ocdbt: "\\e[2J"}'))
    assert outcome.code == 2
    assert "benchmarks[0].options.use_ocdbt: '\\x1b[2J' has a control character" in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_bucket_that_refuses_is_one_message(status, tmp_path):
    """The client of gs:// raises an error of its own for some answers, and one without a number."""
    pytest.importorskip("gcsfs")

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            said = b"who\n::error::asks"
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    with answering(Refusing) as server:
        place = {"STORAGE_EMULATOR_HOST": server.url, "GOOGLE_CLOUD_PROJECT": "p"}
        done = run_cli("inspect", "gs://bucket/checkpoint", **place)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: PermissionError: ")
    assert "who ::error::asks" in line
    assert "; ask for the right to it" in line
    assert done.returncode == 2


def test_a_bucket_without_its_client_names_the_extra(orbax_bench, monkeypatch):
    find_spec = importlib.util.find_spec
    absent = ("gcsfs", "tensorflow")
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name in absent else find_spec(name, *more),
    )
    done = orbax_bench("history", "gs://bucket/runs")
    assert (done.code, done.err) == (
        2,
        "error: gs://bucket/runs: Cloud Storage needs gcsfs: pip install 'orbax-bench[gcs]'\n",
    )


@pytest.mark.parametrize(
    ("number", "code", "advice"),
    [
        (errno.ENOSPC, 1, "; make room, or name a place that can be written"),
        (errno.EROFS, 1, "; make room, or name a place that can be written"),
        (errno.EIO, 1, ""),
        (errno.EACCES, 2, "; ask for the right to it, or name another place"),
    ],
)
def test_a_disk_that_is_full_or_not_well_can_be_tried_again_and_what_helps_is_said(
    run_main, monkeypatch, number, code, advice
):
    monkeypatch.setattr(sys, "argv", ["orbax-bench"])

    def command():
        try:
            raise OSError(number, os.strerror(number))
        except OSError as error:
            raise UserError(f"cannot write the baseline: {error}") from None

    outcome = run_main(lambda: run_command_line(command))
    assert (outcome.code, outcome.out) == (code, "")
    said = f"error: cannot write the baseline: [Errno {number}] {os.strerror(number)}{advice}\n"
    assert outcome.err == said
