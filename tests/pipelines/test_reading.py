import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.preparing import read_suite
from tests.pipelines import fakes


def refusal(path):
    with pytest.raises(UserError) as error:
        read_suite(str(path))
    return str(error.value)


def test_a_scheme_that_cannot_be_read_is_told():
    assert "cannot use 's3://b/suite.yaml'" in refusal("s3://b/suite.yaml")


def test_a_file_that_is_no_text_is_told(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "not a text file; a suite is YAML" in refusal(path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("apiVersion: batch/v1\nkind: CronJob\n", "a Kubernetes CronJob"),
        ("components: {comp-x: {executorLabel: exec-x}}\n", "a compiled component"),
    ],
)
def test_a_yaml_that_is_not_ours_is_named(tmp_path, text, what):
    path = tmp_path / "other.yaml"
    path.write_text(text)
    assert refusal(path) == f"{path}: this is {what}, not a suite; give the suite file"


@pytest.mark.slow
def test_an_object_that_is_not_there_is_told(monkeypatch):
    pytest.importorskip("gcsfs")

    class EmptyStorage(fakes.FakeServer):
        def answer(self, received):
            return fakes.NOT_FOUND

    with EmptyStorage().serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        text = refusal("gs://bucket-of-nobody/suite.yaml")
    assert text == "gs://bucket-of-nobody/suite.yaml: cannot read the suite: there is no such file"
