"""`orbax-bench doctor`."""

import pytest

from orbax_bench_core.cli import machine
from tests.support.shown import assert_accepted


@pytest.fixture
def without_jax(monkeypatch):
    """Spares a test the process that starts JAX."""
    monkeypatch.setattr(machine, "_devices", lambda: "8 x cpu")


def row(outcome, name):
    (line,) = [line for line in outcome.out.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


@pytest.mark.slow
def test_devices_are_those_of_jax(orbax_bench):
    outcome = orbax_bench("doctor")
    assert row(outcome, "devices") == "8 x cpu (cpu; more are simulated as a mesh needs them)"
    assert "This machine can measure: 8 x cpu, memory " in outcome.out
    assert len(outcome.out.splitlines()) <= 20
    assert_accepted(outcome.out)


def test_devices_for_which_jax_waits_for_ever_are_unknown(orbax_bench, monkeypatch):
    monkeypatch.setattr(machine, "_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(machine, "_PROBE_S", 0.1)
    outcome = orbax_bench("doctor")
    assert row(outcome, "devices").startswith("unknown: JAX did not answer")
    assert "? UNKNOWN: JAX did not answer" in outcome.out


@pytest.mark.usefixtures("without_jax")
def test_free_space_is_that_of_the_path(orbax_bench, tmp_path):
    assert " free of " in row(orbax_bench("doctor", "--path", tmp_path), f"disk at {tmp_path}")


@pytest.mark.usefixtures("without_jax")
def test_a_missing_extra_says_how_to_install_it(orbax_bench, monkeypatch):
    monkeypatch.setattr(machine, "_EXTRAS", {"kfp": "no-such-distribution-of-mine"})
    found = row(orbax_bench("doctor"), "extra kfp")
    assert found == "missing: pip install 'orbax-bench[kfp]'"


def test_a_machine_on_which_jax_does_not_start_cannot_measure(orbax_bench, monkeypatch):
    monkeypatch.setattr(machine, "_PROBE", "raise RuntimeError('no devices')")
    outcome = orbax_bench("doctor")
    assert row(outcome, "devices") == "none: RuntimeError: no devices"
    assert "✗ CANNOT MEASURE: JAX has no device, none: RuntimeError: no devices" in outcome.out
    assert "Next:" not in outcome.out


@pytest.mark.usefixtures("without_jax")
def test_a_machine_without_jax_cannot_measure(orbax_bench, monkeypatch):
    from orbax_bench_core.provenance import host_provenance, package_version

    def without_jax(name):
        return "unknown" if name == "jax" else package_version(name)

    monkeypatch.setattr("orbax_bench_core.provenance.machine.package_version", without_jax)
    host_provenance.cache_clear()
    outcome = orbax_bench("doctor")
    host_provenance.cache_clear()
    assert "✗ CANNOT MEASURE: jax is not installed" in outcome.out
    assert "jax not installed" in row(outcome, "packages")
    assert "unknown" not in outcome.out
