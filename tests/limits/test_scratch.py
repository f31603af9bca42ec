import pytest
from etils import epath

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits.scratch import existing_directory, scratch


def test_the_folder_goes_with_all_that_is_in_it(tmp_path):
    with scratch(epath.Path(tmp_path)) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("data")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_goes_after_a_failure_too(tmp_path):
    with pytest.raises(ZeroDivisionError), scratch(epath.Path(tmp_path)) as folder:
        (folder / "file").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_named():
    with pytest.raises(UserError, match="cannot write to /proc: "), scratch(epath.Path("/proc")):
        pass


@pytest.mark.parametrize(
    ("name", "problem"),
    [("missing", "does not exist; give an existing directory"), ("file", "is a file; give")],
)
def test_only_a_directory_will_do(tmp_path, name, problem):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=problem):
        existing_directory(str(tmp_path / name))


def test_an_unknown_scheme_is_refused():
    with pytest.raises(UserError, match="local paths and gs:// only"):
        existing_directory("s3://bucket/dir")
