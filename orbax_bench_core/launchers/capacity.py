"""How GKE gives machines to pods: a reservation, flex-start, spot, and for how long."""

import re
from typing import Final, NamedTuple

_RESERVATION: Final = re.compile(
    r"(projects/(?P<project>[a-z][a-z0-9-]+)/reservations/)?(?P<name>[a-z]([-a-z0-9]*[a-z0-9])?)"
)
_FLEX_START: Final = "cloud.google.com/gke-flex-start"
_LONGEST_RUN_S: Final = 7 * 24 * 3600
"""Seconds for which flex-start gives machines at most."""


class Provisioning(NamedTuple):
    """By what GKE gives machines to pods: a reservation, flex-start, and for how long."""

    node_selectors: dict[str, str]
    taints: tuple[str, ...]
    annotations: dict[str, str]


def provisioning(
    queue: str | None,
    max_run_s: int | None = None,
    reservation: str | None = None,
    *,
    flex_start: bool = False,
) -> Provisioning:
    """Returns the pods' fields that get machines of GKE; with a queue, Kueue decides how long.

    Args:
        queue: Queue of Kueue that admits the job; None without one.
        max_run_s: Seconds for which machines are given; None for no bound.
        reservation: NAME, or projects/PROJECT/reservations/NAME.
        flex_start: Whether machines come by flex-start.
    """
    selectors, taints = dict[str, str](), list[str]()
    if reservation is not None and (parts := _RESERVATION.fullmatch(reservation)):
        selectors["cloud.google.com/reservation-name"] = parts["name"]
        if parts["project"]:
            selectors["cloud.google.com/reservation-project"] = parts["project"]
        selectors["cloud.google.com/reservation-affinity"] = "specific"
    if flex_start:
        selectors[_FLEX_START] = "true"
        taints += [_FLEX_START, *(["cloud.google.com/gke-queued"] if queue else [])]
    annotations = dict[str, str]()
    if max_run_s is not None and queue:
        annotations["provreq.kueue.x-k8s.io/maxRunDurationSeconds"] = str(max_run_s)
    elif max_run_s is not None:
        selectors["cloud.google.com/gke-max-run-duration-seconds"] = str(max_run_s)
    return Provisioning(selectors, tuple(taints), annotations)


def require_one_capacity(reservation: str | None, *, spot: bool, flex_start: bool) -> None:
    """Refuses machines that are to be had in two ways at once, and names of none.

    Raises:
        ValueError: Two of them are given, or the reservation has no such name.
    """
    given = {"reservation": reservation is not None, "spot": spot, "flex_start": flex_start}
    asked = [name for name, asked in given.items() if asked]
    if len(asked) > 1:
        raise ValueError(f"{' and '.join(asked)} exclude each other: leave all but one out")
    if reservation is not None and not _RESERVATION.fullmatch(reservation):
        raise ValueError(
            "a reservation is NAME, or projects/PROJECT/reservations/NAME of another project, "
            f"got {reservation!r}"
        )


def require_bounded(max_run_s: int | None, queue: str | None, *, flex_start: bool) -> None:
    """Refuses a time for which machines are given where nothing says so.

    Raises:
        ValueError: Neither flex-start nor a queue is asked for, or it is longer than 7 days.
    """
    if max_run_s is None:
        return
    if not (flex_start or queue):
        raise ValueError("max_run_s is a setting of flex_start, or of a queue; give one of them")
    if flex_start and max_run_s > _LONGEST_RUN_S:
        raise ValueError(f"flex_start gives machines for {_LONGEST_RUN_S} s at most, 7 days")
