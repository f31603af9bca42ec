"""A suite and what it names on their way to hosts that have no copy."""

import io
import zipfile

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.hosts.suite_archive import differing, pack, unpack


@pytest.fixture
def folder(tmp_path):
    """A suite with a module beside it, and what is not of the suite."""
    home = tmp_path / "suites"
    for path in (
        "suite.yaml",
        "models/small.json",
        "shapes/one.json",
        "package/pyproject.toml",
        "package/src/inner.py",
        "notes.txt",
        "id_rsa",
        "service-account.json",
        "other.py",
        ".git/config",
        ".secret",
        "__pycache__/bench.pyc",
        "env/pyvenv.cfg",
        "env/lib/jax.py",
        "earlier/run.json",
        "earlier/records/a.json",
        "out/records/b.json",
    ):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(path)
    for path, text in {
        "suite.yaml": SUITE,
        "bench.py": "import deep.inside, json\nfrom helper import x",
        "helper.py": "import no_such_module",
        "deep/inside.py": "",
        "deep/secret.json": "",
        "replaced.py": "",
    }.items():
        (home / path).parent.mkdir(exist_ok=True)
        (home / path).write_text(text)
    return home


SUITE = """
suite_name: id
checkpoint_config: {path: gs://b/c, sharding_config_path: shapes/one.json}
environments: [{name: new, requirements: ["./package", "-r notes.txt", ../outside.txt]}]
benchmarks: [{generator: bench.Bench, options: {settings: models/small.json}}]
"""
NAMED = {
    "suite.yaml",
    "bench.py",
    "helper.py",
    "deep/inside.py",
    "models/small.json",
    "shapes/one.json",
    "notes.txt",
    "package/pyproject.toml",
    "package/src/inner.py",
}


def test_the_suite_and_what_it_names_travel_and_nothing_else(folder, tmp_path):
    suite_archive = pack(str(folder / "suite.yaml"), str(folder / "out"))
    assert suite_archive.name == "suite.yaml"
    assert set(suite_archive.files) == NAMED
    there = tmp_path / "there"
    unpack(suite_archive.data, there, digest=suite_archive.digest)
    arrived = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    assert arrived == NAMED
    assert (there / "notes.txt").read_text() == "notes.txt"
    assert differing(suite_archive.hashes, str(there / "suite.yaml")) == ""


def test_a_file_that_another_host_has_otherwise_is_named_and_logs_are_not_looked_at(folder):
    suite = str(folder / "suite.yaml")
    hashes = pack(suite, str(folder / "out")).hashes
    (folder / "notes.txt").write_text("grows")
    assert differing(hashes, suite) == ""
    (folder / "bench.py").write_text("newer")
    (folder / "models" / "small.json").unlink()
    assert differing(hashes, suite) == f"bench.py, models/small.json in {folder}"


def test_a_copy_that_is_not_the_one_of_process_0_is_not_taken(folder, tmp_path):
    suite_archive = pack(str(folder / "suite.yaml"), str(folder / "out"))
    with pytest.raises(ValueError, match="not the one that process 0 has written"):
        unpack(suite_archive.data + b"x", tmp_path / "there", digest=suite_archive.digest)
    assert not (tmp_path / "there").exists()


def test_a_folder_that_is_too_large_is_refused_with_the_largest_in_it(folder):
    sizes = {"data/a.bin": 6_000_000, "data/b.bin": 3_000_000, "c.bin": 2_000_000}
    (folder / "suite.yaml").write_text(f"files: {list(sizes)}")
    for name, size in sizes.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
    with pytest.raises(UserError) as caught:
        pack(str(folder / "suite.yaml"), str(folder / "out"))
    message = str(caught.value)
    assert f"{folder} has 11.0 MB" in message
    assert "at most 10.0 MB" in message
    assert "data/ 9.0 MB, c.bin 2.0 MB" in message


def bomb(size, count=1):
    """An archive of `count` files of zeros, a thousandth of what they unpack to."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for index in range(count):
            files.writestr(f"{index}.py", bytes(size))
    return archive.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not an archive"),
        (b"PK\x03\x04" + bytes(100), "not an archive"),
        (bomb(11_000_000), r"1 files with 11\.0 MB"),
        (bomb(0, 10_001), "10001 files"),
    ],
    ids=["nothing", "torn", "large", "many"],
)
def test_an_archive_that_nobody_packed_is_not_unpacked(tmp_path, data, said):
    with pytest.raises(ValueError, match=said):
        unpack(data, tmp_path / "there")
    assert not (tmp_path / "there").exists()
