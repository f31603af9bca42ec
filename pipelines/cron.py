"""Cron expressions of schedules, as Vertex AI reads them and as Kubeflow reads them.

People write five fields. Vertex AI takes five, with the time zone in front. Kubeflow Pipelines
takes six, seconds first, and misreads five without a word: `0 3 * * *` would fire at second 0 of
minute 3 of every hour. Its controller knows one time zone for all schedules, UTC unless it was set
up otherwise (`CRON_SCHEDULE_TIMEZONE`).
"""

import dataclasses
import datetime
import itertools
import re
import zoneinfo

from orbax_bench_core.errors import UserError, did_you_mean
from orbax_bench_pipelines.target import Target

_FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31"),
    ("month", "1-12 or JAN-DEC"),
    ("day of week", "0-7 or SUN-SAT, where 0 and 7 are Sunday"),
)
_PLAIN = re.compile(r"[0-9A-Za-z*,/-]+")
_MARK = re.compile(r"(?<![A-Za-z])(L|LW)(?![A-Za-z])", re.IGNORECASE)
"""The last day of a month or week: some crons know it, the two services do not."""


@dataclasses.dataclass(frozen=True)
class Cron:
    """Times at which a schedule fires."""

    fields: tuple[str, ...]  # minute, hour, day of month, month, day of week
    zone: str  # IANA name

    def sent(self, target: Target) -> str:
        """Returns it as a service reads it."""
        portable = " ".join(_portable(self))
        if target is Target.VERTEX:
            return f"TZ={self.zone} {portable}"
        if self.zone not in ("UTC", "Etc/UTC"):
            raise UserError(
                "Kubeflow Pipelines runs every schedule in the time zone of its controller, "
                f"UTC unless CRON_SCHEDULE_TIMEZONE is set there, so {self.zone} cannot be "
                "honoured; write the cron in the controller's time zone and leave the time "
                "zone out"
            )
        return f"0 {portable}"

    def upcoming(self, count: int = 3) -> list[datetime.datetime]:
        """Returns the next times that it fires, in its time zone."""
        from cronsim import CronSim

        now = datetime.datetime.now(zoneinfo.ZoneInfo(self.zone))
        return list(itertools.islice(CronSim(" ".join(self.fields), now), count))


def parse_cron(text: str, zone: str | None = None) -> Cron:
    """Reads a cron expression of five fields; without a zone it is UTC."""
    fields = tuple(text.split())
    if len(fields) != len(_FIELDS):
        raise UserError(
            f"bad cron {text!r}: expected five fields (minute hour day-of-month month "
            f"day-of-week), such as '0 3 * * *' for three o'clock every night, got {len(fields)}"
        )
    cron = Cron(fields, _known_zone(zone or "UTC"))
    _check_fields(cron, text)
    return cron


def _known_zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(name, zoneinfo.available_timezones())
        hint = hint if hint.startswith("did") else "IANA names look like Europe/Berlin"
        raise UserError(f"unknown time zone {name!r}; {hint}") from None
    return name


def _check_fields(cron: Cron, text: str) -> None:
    from cronsim import CronSimError
    from cronsim.cronsim import Field

    for field, (name, allowed), value in zip(list(Field)[1:], _FIELDS, cron.fields, strict=True):
        try:
            if not _PLAIN.fullmatch(value) or _MARK.search(value):
                raise CronSimError
            field.parse(value.upper())
        except CronSimError:
            raise UserError(
                f"bad cron {text!r}: {name} {value!r}; expected {allowed}, with *, lists, ranges "
                "or steps"
            ) from None
    try:
        fires = bool(cron.upcoming(1))
    except CronSimError:
        fires = False
    if not fires:
        raise UserError(f"bad cron {text!r}: no such day exists, so it never fires")


def _portable(cron: Cron) -> list[str]:
    """Returns the five fields with Sunday as 0 only: Kubeflow's parser knows no day 7."""
    from cronsim.cronsim import Field

    *others, weekday = cron.fields
    if "7" not in weekday:
        return [*others, weekday]
    days = {int(str(day)) % 7 for day in Field.DOW.parse(weekday.upper())}
    return [*others, ",".join(map(str, sorted(days)))]
