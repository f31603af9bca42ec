"""Names of captures: ids, labels, commits, tags, branches, and the nearest ancestor of HEAD."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from orbax_bench_core.baselines.captures import Capture
from orbax_bench_core.baselines.store import Registry, registry_path
from orbax_bench_core.errors import UserError
from orbax_bench_core.provenance import ask_git

LATEST: Final = "latest"
PREVIOUS: Final = "previous"
NEAREST: Final = "nearest"
HEAD: Final = "HEAD"
_NAMES: Final = (
    f"an id, a label, a commit, a tag, a branch, {NEAREST!r} (the nearest ancestor of HEAD that "
    f"has a capture), {LATEST!r} or {PREVIOUS!r}"
)
_COMMITS: Final = 200_000
"""So many commits are walked back; a capture that is older is no near one."""
_SHORT: Final = 12


def find_capture(captures: Sequence[Capture], name: str) -> Capture:
    """Returns the capture that a name means.

    A branch, `HEAD` and `nearest` mean the nearest ancestor that has a capture, the branch's head
    included; `nearest` is that of HEAD. They are asked of the git repository of the current
    directory, and branches of captures without it. Captures with changes that no commit has are
    found by id and label, and by their own commit when it has no other.

    Args:
        captures: Those of a registry, oldest first.
        name: An id, label, commit, tag or the beginning of one; a branch, `HEAD`, `nearest`,
            `latest`.

    Raises:
        UserError: None is called so; the message names the newest ones.
    """
    if not captures:
        raise UserError("nothing was captured here; capture a run with `baseline capture`")
    if name == LATEST:
        return captures[-1]
    if name in (NEAREST, HEAD):
        return _nearest(captures, HEAD, name)
    found = _exact(captures, name) or _begun(captures, name) or _of_branch(captures, name)
    if found is not None:
        return found
    newest = ", ".join(capture.reference for capture in reversed(captures[-5:]))
    raise UserError(f"no capture is called {name!r}; give {_NAMES}. The newest: {newest}")


def resolve_baseline(
    path: str, *, points: Collection[str] = (), apart_from: Collection[str] = ()
) -> str:
    """Returns the path of the capture that a name in a registry means, such as `reg/nearest`.

    Args:
        path: A path below a registry; of a file or folder that exists it is returned as it is.
        points: Ids of which the capture should have one, so that `nearest` is one that fits.
        apart_from: Ids of runs whose captures do not count: a run is no baseline of itself.

    Raises:
        UserError: The registry has no such capture, or only captures of the run itself.
    """
    folder = registry_path(path)
    spelled = folder.with_suffix("") if folder.suffix == ".json" else folder
    if folder.exists() or spelled.exists():
        return path
    for parent in folder.parents:
        registry = Registry(str(parent))
        if not registry.exists():
            continue
        name = spelled.relative_to(parent).as_posix()
        every = registry.captures()
        captures = [each for each in every if each.run_id not in apart_from]
        if every and not captures:
            raise UserError(
                f"{parent} has captures of the run itself alone, so that {name} is none of another "
                "run; capture another one there, or give a run directory"
            )
        fitting = [
            each
            for each in captures
            if not points or any(point.point_id in points for point in each.points)
        ] or captures
        return f"{parent}/{find_capture(fitting, name).reference}"
    return path


def _exact(captures: Sequence[Capture], name: str) -> Capture | None:
    """Returns the newest capture with that id, label, commit or tag; a clean one before others."""
    for known in (
        [each for each in captures if name in (each.id, each.reference, each.revision)],
        [each for each in captures if each.code.known and name == each.code.commit],
        [each for each in captures if name in each.code.tags],
    ):
        if known:
            return _clean(known)[-1]
    return None


def _begun(captures: Sequence[Capture], name: str) -> Capture | None:
    """Returns the capture whose id, label or commit begins with a name."""
    ids = {each.id: each for each in captures if each.id.startswith(name)}
    if len(ids) == 1:
        return ids.popitem()[1]
    known = _clean([each for each in captures if each.revision.startswith(name)])
    known += _clean(
        [each for each in captures if each.code.known and each.code.commit.startswith(name)]
    )
    revisions = {each.revision: each for each in known}
    several = sorted(ids) or sorted(revisions)
    if ids or len({each.code.commit if each.code.known else each.revision for each in known}) > 1:
        raise UserError(f"{name!r} could be any of: {', '.join(several)}; write more of it")
    return known[-1] if known else None


def _clean(captures: Sequence[Capture]) -> list[Capture]:
    """Returns the captures without changes that no commit has; all when there are only others."""
    return [each for each in captures if each.code.dirty is not True] or list(captures)


def _of_branch(captures: Sequence[Capture], name: str) -> Capture | None:
    """Returns the capture of a branch, or of anything else that git knows."""
    here = Path.cwd()
    for reference in (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}"):
        if ask_git(here, "show-ref", "--verify", "--quiet", reference).ok:
            return _nearest(captures, reference, name)
    commit = ask_git(
        here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
    )
    of_commit = [each for each in captures if commit.ok and each.code.commit == commit.text]
    if of_commit:
        return _clean(of_commit)[-1]
    if commit.ok:
        raise UserError(
            f"no capture has the commit of {name!r}, {commit.text[:_SHORT]}; measure it and "
            f"capture that run, or give {_NAMES}"
        )
    known = [each for each in captures if each.code.branch == name]
    return _clean(known)[-1] if known else None


def _nearest(captures: Sequence[Capture], reference: str, name: str) -> Capture:
    """Returns the newest clean capture of the ancestor that is fewest commits away."""
    here = Path.cwd()
    listed = ask_git(here, "rev-list", "--parents", f"--max-count={_COMMITS}", reference)
    if not listed.ok:
        raise UserError(
            f"{name!r} asks the git repository of the current directory ({here}), which does not "
            f"answer: {listed.reason}; go to a checkout of the benchmark's repository, or give a "
            "commit, a tag or the id of a capture"
        )
    commits = [line.split() for line in listed.text.splitlines()]
    parents = {commit: rest for commit, *rest in commits}
    of_commit = {each.code.commit: each for each in captures if each.code.dirty is False}
    found = _first(parents, commits[0][0], of_commit)
    if found is not None:
        return found
    shallow = ask_git(here, "rev-parse", "--is-shallow-repository").text == "true"
    more = "; the clone is shallow: `git fetch --unshallow`" if shallow else ""
    raise UserError(
        f"none of {len(parents)} commits up to {name!r} has a capture without changes{more}; "
        f"capture a run of one of them, or give the id of a capture"
    )


def _first(
    parents: Mapping[str, Sequence[str]], start: str, captures: Mapping[str, Capture]
) -> Capture | None:
    """Returns the capture that is reached first from a commit, generation by generation."""
    generation, seen = [start], {start}
    while generation:
        for commit in generation:
            if commit in captures:
                return captures[commit]
        before = (parent for commit in generation for parent in parents.get(commit, ()))
        generation = [each for each in dict.fromkeys(before) if each not in seen]
        seen.update(generation)
    return None
