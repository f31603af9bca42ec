import subprocess
import sys

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits import Limits, process
from orbax_bench_core.limits.process import take_limits

pytestmark = pytest.mark.slow

MIB = 1 << 20
TAKE = """
import sys
from orbax_bench_core.limits.process import take_limits
print(take_limits(sys.argv[1], 2 << 20, 2).model_dump_json())
assert "jax" not in sys.modules
"""


def test_limits_are_taken_without_jax_in_the_process_that_asks(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TAKE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    limits = Limits.model_validate_json(done.stdout)
    assert (limits.path, limits.num_bytes, limits.num_threads) == (str(tmp_path), 2 * MIB, 2)
    assert limits.surroundings.host_memory == "reused"
    assert limits.provenance["environment"]["GLIBC_TUNABLES"].startswith("glibc.malloc.mmap")
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_there_is_one_line_here(tmp_path):
    with pytest.raises(UserError) as caught:
        take_limits(str(tmp_path), 5)
    expected = "5 bytes are too few to measure; use at least 1 MiB"
    assert str(caught.value) == f"cannot measure the limits of {tmp_path}: {expected}"


def test_a_process_that_takes_too_long_is_stopped_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match=r"not done after 0\.05 seconds; use fewer bytes"):
        take_limits(str(tmp_path), MIB, timeout_s=0.05)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import os; os.kill(os.getpid(), 9)", "the process was killed by SIGKILL"),
        ("print('nothing of use')", "the process printed no limits"),
        ("raise RuntimeError('no device')", "RuntimeError: no device"),
    ],
)
def test_a_process_that_ends_otherwise_is_an_error(tmp_path, monkeypatch, program, problem):
    (tmp_path / "other_process.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(process, "_MODULE", "other_process")
    with pytest.raises(UserError, match=problem):
        take_limits(str(tmp_path), MIB)
