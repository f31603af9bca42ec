import functools
import json

import pytest

from orbax_bench_core.cli.arguments import parse_size
from orbax_bench_core.errors import UserError
from orbax_bench_core.limits import PROBES, Limits
from tests.support.disks import small_disk
from tests.support.processes import run_cli

MIB = 1 << 20


limits = functools.partial(run_cli, "limits", "--no-lock", COLUMNS="100")


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("256MiB", 256 * MIB),
        ("1.5GiB", 1536 * MIB),
        ("64 KiB", 65536),
        ("2TiB", 2 * MIB**2),
        ("1000", 1000),
        ("1000B", 1000),
    ],
)
def test_sizes_are_binary(text, num_bytes):
    assert parse_size(text) == num_bytes


@pytest.mark.parametrize("text", ["", "MiB", "256MB", "-1MiB", "1e6", "256 mib", "1..5GiB"])
def test_other_sizes_are_refused_with_what_is_allowed(text):
    with pytest.raises(UserError, match="number with KiB, MiB, GiB or TiB, such as 256MiB"):
        parse_size(text)


@pytest.mark.slow
def test_json_has_every_raw_time(tmp_path):
    done = limits("--path", tmp_path, "--size", "2MiB", "--dtype", "bfloat16", "--json")
    assert done.returncode == 0
    found = Limits.model_validate(json.loads(done.stdout), strict=False)
    assert [probe.name for probe in found.probes] == list(PROBES)
    assert {len(probe.seconds) for probe in found.probes} == {0, 3}
    assert found.dtype == "bfloat16"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--path", "/proc"), "cannot write to /proc: "),
        (("--path", "s3://bucket/dir"), "local paths and gs:// only"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(orbax_bench, arguments, problem):
    done = orbax_bench("limits", "--no-lock", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert problem in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.nightly
def test_a_full_disk_is_one_line_and_exit_code_2(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as place:
        done = limits("--path", place)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot measure the limits of {place}: no space: only ")
