"""`orbax-bench plan` from a suite, a spec, a preset and with what is wrong; and `goodput`."""

import json

import pytest

from tests.support.shown import assert_accepted

SUITE = """
suite_name: s
checkpoint_config:
  spec: {w: {dtype: float32, shape: [64, 64], sharding: [fsdp]}}
mesh_config: {mesh_axes: [fsdp], ici_parallelism: {fsdp: 4}}
benchmarks:
  - generator: save_restore
    options: {use_ocdbt: [true, false], use_compression: false, async_enabled: [true, false]}
"""


@pytest.fixture
def run(orbax_bench):
    """Returns the exit code of a command, and what it says."""

    def call(*words, command="plan"):
        done = orbax_bench(command, *words)
        return done.code, done.out + done.err

    return call


def test_a_preset_is_planned_for_a_mesh(run, tmp_path):
    page, text = tmp_path / "plan.html", tmp_path / "plan.md"
    words = ("llama-8b@0.01", "--mesh", "data=16,fsdp=16", "--devices-per-host", 4)
    code, said = run(*words, "--no-compression", "--html", page, "--markdown", text)
    assert code == 0
    sentence = (
        "A save of llama-8b@0.01 from data=16,fsdp=16 writes 6.42 MiB, at most 119 KiB by one of "
        "64 hosts; each device holds 426 KiB."
    )
    assert sentence in said
    assert "94 % of all device memory holds another copy" in said
    assert "hosts write nothing" not in said
    assert len(said.splitlines()) <= 20
    assert_accepted(said)
    assert "256 devices on 64 hosts of 4" in run(*words, "--details")[1]
    assert "60 of 64 hosts write nothing" in run(*words, "--no-replica-parallel")[1]
    assert sentence in page.read_text().replace("\xa0", " ")
    assert text.read_text().startswith(f"# {sentence}")


def test_a_suite_has_a_plan_for_each_save_that_differs(run, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    code, said = run(suite, "--json")
    plans = json.loads(said)
    assert (code, [plan["mesh"] for plan in plans]) == (0, ["fsdp=4", "fsdp=4"])
    assert [plan["stored_bytes"] for plan in plans] == [16384, 16384]
    (plan,) = json.loads(run(suite, "--json", "--no-ocdbt", "--mesh", "fsdp=8")[1])
    assert (plan["mesh"], plan["by_array"][0]["shard_bytes"]) == ("fsdp=8", 2048)
    said = run(suite)[1]
    assert "A save of w from fsdp=4, the largest of 2, writes 16 KiB" in said
    assert_accepted(said)


def test_a_file_with_a_spec_alone_is_a_source(run, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("params: {w: {dtype: float32, shape: [8, 8]}}")
    (plan,) = json.loads(run(spec, "--json")[1])
    assert (plan["elements"], plan["array_bytes"]) == (64, 256)
    config = tmp_path / "config.yaml"
    config.write_text("checkpoint_config: {model: gpt2, scale: 0.1}")
    assert json.loads(run(config, "--json")[1])[0]["tree"] == "gpt2@0.1"


def test_a_save_that_will_fail_ends_with_1(run):
    words = ("gpt2@0.1", "--save-concurrent-gb", "0.0001", "--write-speed", "2", "--no-compression")
    code, said = run(*words)
    assert code == 1
    assert "✗ THE SAVE WILL FAIL: params.wte.weight is written in parts of" in said
    assert "at 2 GiB/s per host (given)" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["llama-9b"], "unknown model 'llama-9b'; did you mean 'llama-8b'?"),
        (["gpt2@much"], "expected a scale such as llama-8b@0.1, got 'much'"),
        (["nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["gpt2", "--chunk-bytes", "lots"], "--chunk-bytes: 'lots' is not a size"),
        (["gpt2", "--write-speed", "-1"], "--write-speed: must be a positive number of GiB/s"),
        (["/nowhere/ckpt"], "'/nowhere/ckpt' does not exist"),
        (["gpt2", "--override", "a=1"], "--override changes a suite file, which 'gpt2' is not"),
    ],
)
def test_what_cannot_be_planned_is_explained(run, words, message):
    code, said = run(*words)
    assert (code, message in said) == (2, True), said


@pytest.mark.nightly
def test_a_factory_is_described_by_a_process_of_its_own(run):
    pytest.importorskip("flax")
    from tests.state import nnx_models

    (plan,) = json.loads(run(f"{nnx_models.__name__}:Many", "--mesh", "data=2,fsdp=4", "--json")[1])
    assert plan["arrays"] == len(plan["by_array"]) > 1


JOB = ("--mtbf", "4h", "--recovery", "5min", "--save-blocking", "2s", "--slowdown", "0.1")


def test_goodput_names_the_best_way(run):
    words = (*JOB, "--save-background", "2min", "--devices", "704")
    code, said = run(*words, command="goodput")
    assert code == 0
    assert len(said.splitlines()) <= 20
    assert "Save in the background, every 10.4 min: 93.0 % of the time is useful.\n" in said
    numbers = json.loads(run(*words, "--json", command="goodput")[1])
    assert [found["strategy"] for found in numbers["strategies"]] == ["sync", "async", "continuous"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --mtbf, --save-blocking, --save-background, --slowdown, --recovery"),
        (["--mtbf", "often"], "--mtbf: expected a duration such as 90s"),
        (["--from-log", "/nowhere"], "/nowhere: cannot be read"),
    ],
)
def test_what_a_job_lacks_is_named(run, words, message):
    code, said = run(*words, command="goodput")
    assert (code, message in said) == (2, True), said
