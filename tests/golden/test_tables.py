"""Tables that other programs read: samples, summary, TensorBoard."""

import pytest

from tests.golden import made, support, tables


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with records of every kind, and a paired one, reported."""
    root = tmp_path_factory.mktemp("golden runs")
    made.plain_run(root / "plain")
    made.paired_run(root / "paired", made.ONE, blocks=2)
    for name in ("plain", "paired"):
        support.said("report", root / name)
    return root


@pytest.mark.parametrize("name", ["plain", "paired"])
def test_samples(golden, runs, name):
    golden(f"tables/{name}_samples.txt", tables.parquet_rows(runs / name))


def test_columns_of_samples(golden, runs):
    golden("tables/samples_schema.txt", tables.parquet_schema(runs / "plain"))


@pytest.mark.parametrize("name", ["plain", "paired"])
def test_summary(golden, runs, name):
    golden(f"tables/{name}_summary.csv", (runs / name / "summary.csv").read_text())


@pytest.mark.parametrize(
    ("name", "point"), [("plain", "use_ocdbt=true,processes=2"), ("paired", "arm=candidate")]
)
def test_tensorboard(golden, runs, name, point):
    golden(f"tables/{name}_tensorboard.txt", tables.tensorboard(runs / name, point))


@pytest.mark.parametrize("name", ["plain", "paired"])
def test_files_of_a_run(golden, runs, name):
    files = sorted(file.relative_to(runs / name) for file in (runs / name).rglob("*"))
    lines = [f"{file.as_posix()}\n" for file in files if (runs / name / file).is_file()]
    golden(f"tables/{name}_files.txt", "".join(lines))
