"""A benchmark whose options are a script, for workers that follow it without measuring anything."""

import dataclasses

from orbax_bench_core import authoring

NAME = "tests.support.scripted.Scripted"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScriptedOptions(authoring.BenchmarkOptions):
    """What a worker is to do with a repeat.

    Attributes:
        act: What happens in a measured repeat after `save`, or after the kill of a drill: `behave`;
            `raise` an error; `need` or `need_late`, for want of something before or after the first
            operation; `skip`; `die` by SIGKILL; `hang`; `unrecorded`, for a full disk; `unwell`,
            for one that fails; `lag` behind the other hosts; `freeze` by SIGSTOP; `doze`, which is
            a freeze from which it is let go after `lasts_s`; `crowd_out`: the other hosts abort, as
            JAX does when it has lost a peer, and half a second later this one dies by SIGKILL;
            `outtalk`: they report that instead; `die_last` by SIGKILL when the others have passed;
            `die_passed`, when this one has passed and the others have not.
        act_at: The measured repeats in which it happens, such as `3 7`; empty means all. Those of
            an arm of a pair are counted by themselves, whatever the order of the arms.
        first_attempts: Whether it happens in first attempts, and retries behave.
        lacks: An operation that is not measured.
        lacks_at: The repeats that lack it; empty means all.
        slow_at: The repeats whose `save` takes `slow_by` times as long.
        slow_by: See `slow_at`.
        only_once: Whether it happens in one repeat, and the next ones behave.
        on_host: The only host on which it happens.
        in_warmup: Whether it happens in warm-ups, and not in measured repeats.
        fails_from: The first repeat that fails with `OSError`.
        save_s: Seconds that are reported for `save`.
        load_s: Seconds that are reported for `load`.
        burden: Times as long the `save` of the repeat takes that comes next in the process.
        sleeps_s: Seconds for which `save` really sleeps; what that takes by the clock is reported
            beside `save_s`.
        keeps_mib: MiB that a process reports to keep of every save, in a soak.
        save_interval_steps: Steps between the saves of training that a drill kills.
        kill: What the drill kills, as `training_job` has it.
        peers_wait_s: Seconds for which it leaves the others alone.
        trains: Steps after which training that is to be killed ends by itself; none by default.
        lasts_s: Seconds for which a repeat, and a host that lags, really takes.
    """

    act: str | list[str] = "behave"
    act_at: str = ""
    first_attempts: bool = False
    lacks: str = ""
    lacks_at: str = ""
    slow_at: str = ""
    slow_by: float = 4.0
    only_once: bool = False
    on_host: int | None = None
    in_warmup: bool = False
    fails_from: int = 1_000_000
    save_s: float | list[float] = 0.02
    load_s: float = 0.02
    burden: float = 1.0
    sleeps_s: float = 0.0
    keeps_mib: float = 0.0
    save_interval_steps: int = 5
    kill: str = "last"
    peers_wait_s: float = 0.0
    trains: int = 1_000_000
    lasts_s: float = 0.0


@authoring.benchmark_options(ScriptedOptions)
class Scripted(authoring.BenchmarksGenerator):
    """Stands for the script in a suite; only the fake worker can follow it."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        raise NotImplementedError("tests/support/fake_worker.py follows the script")
