"""The commands on the pages of services, which get them over the loopback interface."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("kfp")
pytest.importorskip("google.cloud.aiplatform")

from tests.pipelines import fakes, strict
from tests.pipelines.conftest import sets

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "pipelines"
IMAGE = f"registry.example/bench/orbax-bench@sha256:{'0' * 64}"
PLACEHOLDERS = {
    "SUITE.yaml": "{suite}",
    "gs://B": "gs://b",
    "=URL": "=http://localhost:1",
    "=P": "=p-1",
    "=L": "=us-central1",
    "=NAME": "=name",
    "IMAGE": IMAGE,
}


def commands(engine):
    for block in re.findall(r"```sh\n(.*?)```", (DOCS / f"{engine}.md").read_text(), re.DOTALL):
        for number, line in enumerate(block.replace("\\\n", " ").strip().splitlines()):
            yield pytest.param(shlex.split(line), id=f"{engine}-{number}")


@pytest.fixture
def typed(pipeline_command, suite, tmp_path):
    """Runs a line of a page, with files of this test in place of those that it names."""

    def run(words, *more, endpoint=""):
        assert words[:2] == ["orbax-bench", "pipeline"]
        given = {"SUITE.yaml": str(suite), "sweep.yaml": str(tmp_path / "sweep.yaml")}
        given |= {"endpoint=http://localhost:8080": f"endpoint={endpoint}"}
        done = pipeline_command(*(given.get(word, word) for word in words[2:]), *more)
        assert done.code == 0, done.err
        return done.out

    return run


def check_package(words, tmp_path):
    """A package is written and nothing is sent; what it holds, test_compile.py tells."""
    assert words[2] == "compile"
    assert (tmp_path / "sweep.yaml").stat().st_size > 0


@pytest.mark.parametrize("words", list(commands("kubeflow")))
def test_a_command_for_kubeflow_is_taken_by_its_api(words, typed, tmp_path, monkeypatch):
    with fakes.FakeKubeflow().serving() as server:
        monkeypatch.setenv("KF_PIPELINES_ENDPOINT", server.url)  # of a cluster of one's own
        typed(words, endpoint=server.url)
        sent = {
            "submit": server.bodies("POST", "/runs"),
            "schedule": server.bodies("POST", "/recurringruns"),
        }
    if words[2] not in sent:
        check_package(words, tmp_path)
        return
    [body] = sent[words[2]]
    strict.pipeline_spec(body["pipeline_spec"]["pipeline_spec"])
    strict.platform_spec(body["pipeline_spec"]["platform_spec"])


@pytest.mark.parametrize("words", list(commands("vertex")))
def test_a_command_for_vertex_is_taken_by_its_api(words, typed, tmp_path, monkeypatch):
    # What Google's client asks a project for where it is not told.
    known = ("pipeline_root=gs://b/root", "service_account=me@p-1.iam.gserviceaccount.com")
    with fakes.FakeVertex().serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        service = sets(f"endpoint={server.url}", *known)
        typed(words, *(() if words[2] == "compile" else service))
        sent = {
            "submit": server.bodies("POST", "/pipelineJobs"),
            "schedule": [
                body["createPipelineJobRequest"]["pipelineJob"]
                for body in server.bodies("POST", "/schedules")
            ],
        }
    if words[2] not in sent:
        check_package(words, tmp_path)
        return
    [job] = sent[words[2]]
    strict.pipeline_spec(job["pipelineSpec"])


def checks():
    """The commands of the table of what no cluster has met, and the first one with each setting."""
    page = (DOCS.parent / "pipelines.md").read_text()
    table = page.partition("## What has not met a real cluster")[2].partition("\n## ")[0]
    whole = re.findall(r"`(orbax-bench [^`]+)`", table)
    first = re.findall(r"`(--(?:set|create)[^`]*)`", table)
    assert len(whole) > 3 and len(first) > 4
    for line in [*whole, *(f"{whole[0]} {flags}" for flags in first)]:
        for placeholder, value in PLACEHOLDERS.items():
            line = re.sub(rf"{placeholder}(?!\w)", value, line)
        yield pytest.param(line.split()[1:], id=line.split("{")[0] + line.split()[-1])


@pytest.mark.parametrize("words", list(checks()))
def test_a_check_on_a_real_cluster_is_a_command_that_plans(words, suite, orbax_bench):
    done = orbax_bench(*(suite if word == "{suite}" else word for word in words), "--dry-run")
    assert done.code == 0, done.err
