import os

import pytest

from orbax_bench_core.environments import EnvironmentFailed
from orbax_bench_core.environments.make import read_requirement


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "project" / "src" / "module.py").write_text("A = 1\n")
    return tmp_path / "project"


@pytest.mark.parametrize(
    "given",
    [
        "orbax-checkpoint==0.11.32",
        "jax[cuda12]==0.9.0",
        "orbax-checkpoint @ git+https://example.org/orbax@0123abc#subdirectory=checkpoint",
        "https://example.org/orbax_checkpoint-0.12.0-py3-none-any.whl",
        'numpy>=2 ; python_version >= "3.11"',
    ],
)
def test_what_is_not_local_is_left_to_uv(tmp_path, given):
    read = read_requirement(given, tmp_path)
    assert (read.given, read.content, read.path) == (given, given, None)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        *((given, "{folder}/a.whl") for given in ("./a.whl", "a.whl", "sub/../a.whl")),
        ("{folder}/a.whl", "{folder}/a.whl"),
        ("./a.whl[gcs,s3]", "{folder}/a.whl[gcs,s3]"),
        ("a @ ./a b.whl", "a @ file://{folder}/a%20b.whl"),
        ("a @ file://{folder}/a%20b.whl", "a @ file://{folder}/a%20b.whl"),
    ],
)
def test_a_wheel_is_found_beside_the_suite(tmp_path, given, found):
    for name in ("a.whl", "a b.whl"):
        (tmp_path / name).write_bytes(b"wheel")
    read = read_requirement(given.format(folder=tmp_path), tmp_path)
    assert read.at(read.path) == found.format(folder=tmp_path)


def test_a_wheel_is_told_by_its_content_wherever_it_lies(tmp_path):
    for folder, content in (("one", b"a"), ("two", b"a"), ("other", b"b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.whl").write_bytes(content)
    one, two, other = (
        read_requirement(f"./{folder}/a.whl", tmp_path).content
        for folder in ("one", "two", "other")
    )
    assert one == two != other


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda source: (source / "module.py").write_text("A = 2\n"), id="content"),
        pytest.param(lambda source: (source / "module.py").rename(source / "other.py"), id="name"),
        pytest.param(lambda source: add(source / "build" / "module.py"), id="folder called build"),
        pytest.param(lambda source: add(source / os.fsdecode(b"caf\xe9.py")), id="name of no text"),
    ],
)
def test_a_folder_is_told_by_its_sources(project, tmp_path, change):
    read = read_requirement("./project", tmp_path)
    change(project / "src")
    assert read.path == project
    assert read_requirement("./project", tmp_path).content != read.content


def add(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("")


@pytest.mark.parametrize(
    "left",
    [
        ".git/index",
        "src/__pycache__/module.pyc",
        "build/lib/module.py",
        "src/x.egg-info/PKG-INFO",
        "dist/x.whl",
    ],
)
def test_what_tools_leave_in_a_folder_does_not_count(project, tmp_path, left):
    read = read_requirement("./project", tmp_path)
    (project / left).parent.mkdir(parents=True)
    (project / left).write_text("left")
    assert read_requirement("./project", tmp_path).content == read.content


@pytest.mark.parametrize("given", ["-e ./project", "--pre", "-r other.txt"])
def test_options_of_pip_are_refused(tmp_path, given):
    with pytest.raises(EnvironmentFailed, match="is an option of pip"):
        read_requirement(given, tmp_path)


def test_what_is_neither_a_file_nor_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.whl")
    with pytest.raises(EnvironmentFailed, match="neither a file nor a folder"):
        read_requirement("./a.whl", tmp_path)
