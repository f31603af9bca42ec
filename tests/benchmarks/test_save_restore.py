"""Saves and loads; tests/worker/test_effects.py shows what the options of `save_restore` do."""

import json
import os
import stat
import sys

import jax.numpy as jnp
import pytest
from etils import epath
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.authoring import TestContext, UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import save_restore
from orbax_bench_core.benchmarks.save_restore import (
    Lustre,
    LustreOptions,
    SaveRestore,
    SaveRestoreOptions,
)

from .conftest import SPEC, TIME


@pytest.mark.slow
def test_measures_the_guides_operations_and_exact_bytes(run):
    outcome = run(SaveRestore, spec={**SPEC, "name": "str"})
    assert outcome.operations == {"save", "save_blocking", "save_background", "load"}
    assert outcome.verified
    for operation in ("save", "load"):
        expected = 512 * 256 * 2 + 64 * 64 * 4
        assert outcome.value(operation, "5_inventory/operation_bytes") == expected


def test_defect_13_save_is_its_blocking_and_its_background_part(run):
    outcome = run(SaveRestore)
    whole, blocking, background = (
        outcome.value(operation, TIME) for operation in ("save", "save_blocking", "save_background")
    )
    assert blocking + background <= whole <= 1.05 * (blocking + background) + 0.001


@pytest.mark.parametrize("option", [{"use_ocdbt": False}, {"use_replica_parallel": False}])
def test_separate_folders_need_ocdbt_and_parallel_replicas(option):
    given = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert SaveRestoreOptions(**given).is_valid()
    assert not SaveRestoreOptions(**{**given, **option}).is_valid()


def test_a_wrong_restore_fails_the_repeat(run, monkeypatch):
    load = ocp.load

    def wrong(*given, **options):
        tree = load(*given, **options)
        return {**tree, "array": tree["array"] + 1}

    monkeypatch.setattr(ocp, "load", wrong)
    with pytest.raises(VerificationError, match="array: different"):
        run(SaveRestore)


LOCAL = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """The kernel's list of mounts, as it would be with Lustre there."""
    file = tmp_path / "mountinfo"
    monkeypatch.setattr(save_restore, "_MOUNTS", file)

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
    assert save_restore.file_system(epath.Path(tmp_path) / "c") == "lustre"
    assert save_restore.file_system(epath.Path(tmp_path) / "a b" / "c") == "tmpfs"
    assert save_restore.file_system(epath.Path("/elsewhere")) == "ext4"


def test_a_bucket_is_on_no_file_system():
    assert save_restore.file_system(epath.Path("gs://bucket/folder")) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("stripe_count", 0), ("stripe_count", -2), ("stripe_size_kb", 0), ("stripe_size_kb", 100)],
)
def test_a_striping_that_lustre_cannot_make_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        LustreOptions(**{name: value})


def test_durable_is_around_the_whole(tmp_path):
    class Durable:
        """Asks for durability; the test's own stand-in for the disk."""

        durable = True
        synced = []

        def make_durable(self, checkpoint):
            self.synced.append(checkpoint.name)

        def prepare_load(self, operation, checkpoint):
            assert self.synced

    tree = {"w": jnp.arange(6.0)}
    options = SaveRestoreOptions(async_enabled=False)
    context = TestContext(
        pytree=tree, path=epath.Path(tmp_path), options=options, conditioner=Durable()
    )
    samples = SaveRestore().test_fn(context).metrics.samples
    operations = [sample.operation for sample in samples if sample.metric == TIME]
    assert operations == ["save_blocking", "save", "save_durable", "load"]
    assert Durable.synced == ["ckpt"]
