"""Liveness of a worker, judged by signs that are taken from outside of its process.

A worker that is frozen says nothing of itself, and its peers say only that they have lost it. So
the parent of a worker looks at the state that the kernel gives for it, at the CPU that it has
used, at the pipe of its events and at its exit code. The rule, `Pulse`, reads nothing and has no
clock, so that it is the same for workers on this machine and for those whose signs an agent sends.
"""

import dataclasses
import enum
import signal
from typing import Final

from orbax_bench_core.execute.signs import Signs

_UNINTERRUPTIBLE = "D"
_RUNNING = "R"


class Liveness(enum.StrEnum):
    """Condition of a worker, by its signs."""

    ALIVE = "alive"  # it runs, which does not mean that its operation gets anywhere
    FROZEN = "frozen"  # somebody has stopped it, and it goes on only if somebody lets it
    STALLED = "stalled"  # in uninterruptible sleep, as behind a storage that does not answer
    DEAD = "dead"  # it has ended
    UNKNOWN = "unknown"  # one that waits for a peer sleeps just as one that hangs by itself


@dataclasses.dataclass(frozen=True, kw_only=True)
class Patience:
    """Times for which signs are watched before they count, in seconds."""

    look_s: float = 1.0  # between two looks at the signs. A look reads two small files a worker
    confirm_s: float = 1.0  # how long a worker is stopped before it counts as frozen
    # how long it is frozen before its repeat ends: a debugger, or a paused container, may
    # let it go on
    frozen_s: float = 5.0
    # how long it is in uninterruptible sleep before that is said. It ends nothing, for slow storage
    # looks the same
    stalled_s: float = 10.0
    quiet_s: float = 10.0  # how long ago it may last have used the CPU to count as alive
    # a longer time between two looks counts for nothing, for then the one who looks was itself
    # suspended, perhaps with all of the machine
    gap_s: float = 5.0
    # how long, once a host has failed, the others may still end by themselves, so that what they
    # know of the failure is kept and the one that caused it is found among them
    settle_s: float = 3.0


PATIENCE: Final = Patience()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judgement:
    """Condition of a worker by its signs, since when, and in words that follow its name."""

    liveness: Liveness
    lasting_s: float
    said: str


class Pulse:
    """The signs of one worker over time; they are handed over in order."""

    def __init__(self, patience: Patience = PATIENCE) -> None:
        self._patience = patience
        self._last: tuple[float, Signs] | None = None
        self._ran_at: float | None = None
        self._stopped_at: float | None = None
        self._asleep_at: float | None = None
        self._gone_at: float | None = None

    @property
    def signs(self) -> Signs:
        """The last signs."""
        return Signs() if self._last is None else self._last[1]

    @property
    def suspect(self) -> bool:
        """Whether it is stopped, and not yet for long enough to be frozen."""
        return self.signs.stopped and self.judgement().liveness is Liveness.UNKNOWN

    def observe(self, at: float, signs: Signs) -> None:
        """Takes the signs of one look.

        Args:
            at: When they were taken, in seconds of a monotonic clock.
            signs: What was seen then; a sign that cannot be read is unknown.
        """
        last_at, last = self._last or (at, None)
        if last is None or at - last_at > self._patience.gap_s:
            self._stopped_at = self._asleep_at = self._gone_at = None
            last = None
        # Who has used the CPU since the last look was not stopped all the time.
        ran = last is not None and last.ticks is not None and last.ticks != signs.ticks
        if ran or signs.state == _RUNNING:
            self._ran_at = at
        if ran:
            self._stopped_at = self._asleep_at = None
        asleep = signs.state == _UNINTERRUPTIBLE and not signs.stopped
        self._stopped_at = _since(self._stopped_at, at, signs.stopped)
        self._asleep_at = _since(self._asleep_at, at, asleep)
        self._gone_at = _since(self._gone_at, at, signs.gone)
        self._last = (at, signs)

    def judgement(self) -> Judgement:
        """Judges what was seen until now."""
        if self._last is None:
            return Judgement(liveness=Liveness.UNKNOWN, lasting_s=0.0, said="was not looked at")
        (at, signs), patience = self._last, self._patience
        gone, stopped, asleep, ran = (
            None if since is None else at - since
            for since in (self._gone_at, self._stopped_at, self._asleep_at, self._ran_at)
        )
        if gone is not None:
            return Judgement(liveness=Liveness.DEAD, lasting_s=gone, said=_describe_end(signs))
        if stopped is not None:
            frozen = stopped >= max(patience.confirm_s, 1e-9)  # never by a single look
            liveness = Liveness.FROZEN if frozen else Liveness.UNKNOWN
            said = f"{_describe_stop(signs)} for {stopped:.1f} s"
        elif asleep is not None and asleep >= patience.stalled_s:
            state = f"state D{_place(signs)}"
            said = f"has been in uninterruptible sleep ({state}) without using the CPU"
            liveness, said = Liveness.STALLED, f"{said} for {asleep:.0f} s"
        elif ran is not None and ran <= patience.quiet_s:
            liveness, said = Liveness.ALIVE, "runs"
        elif not signs.state:
            liveness, said = Liveness.UNKNOWN, "shows no signs that can be read"
        else:
            liveness, said = Liveness.UNKNOWN, f"sleeps{_place(signs)} and uses no CPU"
        lasting = next((seconds for seconds in (stopped, asleep) if seconds is not None), 0.0)
        return Judgement(liveness=liveness, lasting_s=lasting, said=said)


def signal_name(number: int) -> str:
    """Returns the name of a signal; most of those for real time have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _since(since: float | None, at: float, still: bool) -> float | None:
    if not still:
        return None
    return at if since is None else since


def _describe_end(signs: Signs) -> str:
    if signs.exit_code is None:
        return "has ended"
    if signs.exit_code >= 0:
        return f"ended with exit code {signs.exit_code}"
    return f"was killed by {signal_name(-signs.exit_code)}"


def _describe_stop(signs: Signs) -> str:
    if signs.state == "T":
        return "has been stopped (state T)"
    if signs.state == "t":
        return "has been stopped by a debugger (state t)"
    return f"has been held by the freezer of its control group (state {signs.state}{_place(signs)})"


def _place(signs: Signs) -> str:
    return f" in {signs.wchan}" if signs.wchan else ""
