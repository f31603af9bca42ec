"""`lustre`: a striping where there is Lustre, and the truth where there is none."""

import json
import os
import stat
import sys

import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks import lustre
from orbax_bench_core.benchmarks.lustre import Lustre, LustreOptions

LOCAL = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """The kernel's list of mounts, as it would be with Lustre there."""
    file = tmp_path / "mountinfo"
    monkeypatch.setattr(lustre, "_MOUNTS", file)

    def write(*lines):
        file.write_text(LOCAL + "".join(lines))

    write(f"40 22 0:50 / {tmp_path} rw - lustre 10.0.0.1@tcp:/scratch rw,flock\n")
    return write


@pytest.fixture
def lfs(tmp_path, monkeypatch):
    """A stand-in for Lustre's command, which cannot run here; it notes its words."""
    said = tmp_path / "said.jsonl"

    def install(code=0):
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "lfs"
        script.write_text(
            f"#!/bin/sh\nexec '{sys.executable}' -c 'import json, sys; "
            f'print(json.dumps(sys.argv[1:]), file=open("{said}", "a")); '
            'print("stripe_count: 4"); print("refused", file=sys.stderr); '
            f'sys.exit({code})\' "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])
        return lambda: [json.loads(line) for line in said.read_text().splitlines()]

    return install


def test_elsewhere_it_says_what_the_file_system_is(run):
    with pytest.raises(UnmetNeed, match=r"needs an output directory on Lustre; .* is (on|not)"):
        run(Lustre)


@pytest.mark.usefixtures("mounts")
def test_without_lfs_it_is_named(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnmetNeed, match="needs the lfs command"):
        run(Lustre)


@pytest.mark.slow
@pytest.mark.usefixtures("mounts")
def test_stripe_count_and_stripe_size_kb(run, lfs):
    said = lfs()
    outcome = run(Lustre, stripe_count=-1, stripe_size_kb=1024)
    folder = str(outcome.folder)
    assert said() == [
        ["setstripe", "--stripe-count", "-1", "--stripe-size", "1024K", folder],
        ["getstripe", "--directory", folder],
    ]
    assert outcome.metrics.notes["striping"] == ["stripe_count: 4"]
    assert outcome.operations == {"save", "save_blocking", "save_background", "load"}
    assert outcome.verified


@pytest.mark.slow
@pytest.mark.usefixtures("mounts")
def test_without_options_the_striping_stays(run, lfs):
    said = lfs()
    run(Lustre)
    assert [words[0] for words in said()] == ["getstripe"]


@pytest.mark.usefixtures("mounts")
def test_a_striping_that_was_refused_is_said(run, lfs):
    lfs(code=3)
    with pytest.raises(UnmetNeed, match="lfs setstripe failed: refused"):
        run(Lustre, stripe_count=2)


def test_the_innermost_mount_counts(mounts, tmp_path):
    mounts(
        f"40 22 0:50 / {tmp_path} rw - lustre server rw\n",
        f"41 40 0:51 / {tmp_path}/a\\040b rw master:1 - tmpfs tmpfs rw\n",
    )
    assert lustre.file_system(epath.Path(tmp_path) / "c") == "lustre"
    assert lustre.file_system(epath.Path(tmp_path) / "a b" / "c") == "tmpfs"
    assert lustre.file_system(epath.Path("/elsewhere")) == "ext4"


def test_a_bucket_is_on_no_file_system():
    assert lustre.file_system(epath.Path("gs://bucket/folder")) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("stripe_count", 0), ("stripe_count", -2), ("stripe_size_kb", 0), ("stripe_size_kb", 100)],
)
def test_a_striping_that_lustre_cannot_make_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        LustreOptions(**{name: value})
