"""Checkpoints that were there before: compared with what was recorded, or called not verified."""

import pytest
from etils import epath

from orbax_bench_core.state import DIGESTS_FILE, make_context, orbax_api, save_fixture
from orbax_bench_core.testing import run_benchmark

SPEC = {"w": {"dtype": "float32", "shape": [16, 8]}, "step": "int"}
READERS = ["orbax_load", "resharding"]
PATH = {"orbax_load": "checkpoint_path", "resharding": "reference_checkpoint_path"}


@pytest.fixture
def recorded(tmp_path, make_tree):
    """A checkpoint as `generate-checkpoint` leaves it, of values that lie in files as they are."""
    with make_context(use_compression=False, use_ocdbt=False, use_zarr3=False):
        save_fixture(make_tree(SPEC), str(tmp_path / "given"))
    return tmp_path / "given"


def flip_bit(checkpoint):
    (chunk, *_) = sorted((checkpoint / "state" / "w").glob("[0-9]*"))
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(bytes(content))


def load(benchmark, given, folder, **blocks):
    options = {} if "checkpoint" in blocks else {PATH[benchmark]: str(given)}
    return run_benchmark(benchmark, str(folder), options=options, **blocks)[0]


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", READERS)
def test_a_load_agrees_with_the_recorded_digest(benchmark, recorded, tmp_path):
    outcome = load(benchmark, recorded, tmp_path / "run")
    outcome.assert_verified()
    assert outcome.record.state.verified == "reference"


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", READERS)
def test_a_flipped_bit_fails_the_repeat(benchmark, recorded, tmp_path):
    flip_bit(recorded)
    record = load(benchmark, recorded, tmp_path / "run").record
    assert record.status == "failed"
    assert record.error.type == "VerificationError"
    assert "w: different" in record.error.message
    assert record.state.verified == "none"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["option", "checkpoint_config"])
def test_without_a_record_it_is_compared_with_itself_and_never_verified(source, recorded, tmp_path):
    (recorded / DIGESTS_FILE).unlink()
    flip_bit(recorded)
    blocks = {} if source == "option" else {"checkpoint": {"path": str(recorded)}}
    outcome = load("orbax_load", recorded, tmp_path / "run", **blocks)
    outcome.assert_passed()
    assert outcome.record.state.verified == "itself"
    with pytest.raises(AssertionError, match="two loads of the same bytes"):
        outcome.assert_verified()


@pytest.mark.slow
def test_a_digest_captured_beside_a_checkpoint_is_what_later_loads_are_compared_with(
    recorded, tmp_path
):
    (recorded / DIGESTS_FILE).unlink()
    options = {"checkpoint_path": str(recorded), "capture_digests_path": str(recorded)}
    (first,) = run_benchmark("orbax_load", str(tmp_path / "first"), options=options)
    first.assert_passed()
    assert first.record.state.verified == "itself"
    flip_bit(recorded)
    record = load("orbax_load", recorded, tmp_path / "second").record
    assert "w: different" in record.error.message


@pytest.mark.slow
def test_a_load_that_is_not_what_was_recorded_replaces_no_digest(recorded, tmp_path):
    before = (recorded / DIGESTS_FILE).read_text()
    flip_bit(recorded)
    options = {"checkpoint_path": str(recorded), "capture_digests_path": str(recorded)}
    (outcome,) = run_benchmark("orbax_load", str(tmp_path / "run"), options=options)
    assert outcome.record.error.type == "VerificationError"
    assert (recorded / DIGESTS_FILE).read_text() == before


@pytest.mark.slow
def test_what_is_recorded_must_be_a_digest(recorded, tmp_path):
    (recorded / DIGESTS_FILE).write_text("[]")
    record = load("orbax_load", recorded, tmp_path / "run").record
    assert "is not a digest per leaf" in record.error.message


@pytest.mark.slow
def test_generated_data_are_a_reference_of_a_checkpoint_that_holds_them(run, tmp_path, make_tree):
    from orbax_bench_core.benchmarks.orbax_load import OrbaxLoad

    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(SPEC))
    outcome = run(OrbaxLoad, spec=SPEC, checkpoint_path=str(tmp_path / "given"))
    assert outcome.against == ["reference"]
