"""Code under test: the revision of a benchmark's class and of its suite file."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.files import ResultModel, read_at_most
from orbax_bench_core.sweep import SweepPoint, is_builtin

UNKNOWN: Final = "unknown"
_SHORT: Final = 12
_AT_ONCE: Final = 4
"""Questions to a repository at once: each is a process that mostly waits for its own start."""
_USER: Final = re.compile(r"^(?:([a-z][a-z0-9+.-]*://)[^/@]*@|[^/@:]+@(?=[^/:]+:))", re.IGNORECASE)
"""User and password of a remote, as in `https://token@host/` and `git@host:path`."""


class Source(ResultModel):
    """Revision of one file.

    Attributes:
        file: Where it lay; empty when nobody knows.
        commit: Commit that was checked out around it, or `unknown`.
        dirty: Whether the repository had changes that no commit has: tracked files, Python files
            that git does not ignore, or this file itself. `unknown` without a commit.
        changes: SHA-256 of these changes, in hex; empty when there are none, or when git could not
            tell.
        describe: What `git describe --tags --always` says of the commit.
        tags: Tags of the commit.
        branch: Branch that was checked out; empty when none was.
        remote: Address of the remote `origin`, or of the first one, without user and password.
        path: Where the file lies in its repository.
        package: Distribution that installed the file, when it lies in no repository.
        version: Version of that distribution.
        content: SHA-256 of the file, in hex; empty when it could not be read.
        reason: Why the commit is unknown; empty when it is known.
    """

    file: str = ""
    commit: str = UNKNOWN
    dirty: bool | Literal["unknown"] = "unknown"
    changes: str = ""
    describe: str = ""
    tags: tuple[str, ...] = ()
    branch: str = ""
    remote: str = ""
    path: str = ""
    package: str = ""
    version: str = ""
    content: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether the commit is known."""
        return self.commit != UNKNOWN

    @property
    def revision(self) -> str:
        """Name of the revision, with which it can be filed.

        A commit, a commit and the digest of what was changed since, or `unknown`.
        """
        if not self.known or self.dirty is not True:
            return self.commit
        return f"{self.commit}-dirty{f'.{self.changes[:8]}' if self.changes else ''}"

    @property
    def words(self) -> str:
        """The revision for people: commit, tag, and whether there were changes."""
        if not self.known:
            installed = f"{self.package} {self.version}" if self.package else ""
            return installed or (f"{UNKNOWN} ({self.reason})" if self.reason else UNKNOWN)
        tag = f" ({', '.join(self.tags)})" if self.tags else ""
        changed = f" with changes {self.changes[:8]}".rstrip() if self.dirty is True else ""
        return f"{self.commit[:_SHORT]}{tag}{changed}"


class CodeUnderTest(ResultModel):
    """Revisions of what a run measures.

    Attributes:
        generators: File that defines each benchmark class, by the name that a point has for it.
        suite: The suite file.
    """

    generators: dict[str, Source] = {}
    suite: Source = Source()

    def under_test(self, point: SweepPoint) -> Source:
        """Returns the code under test of a point, as `recorded_code` does of a record."""
        built_in = is_builtin(point.benchmark)
        return self.suite if built_in else self.generators.get(point.benchmark, Source())

    def of(self, point: SweepPoint) -> dict[str, Any]:
        """Returns the part that the record of a point keeps, as plain data."""
        generator = self.generators.get(point.benchmark, Source())
        return {
            "generator": generator.model_dump(mode="json"),
            "suite": self.suite.model_dump(mode="json"),
        }


def code_under_test(generators: Mapping[str, str], suite_file: str) -> CodeUnderTest:
    """Returns the revisions of benchmark classes and of a suite file.

    Each repository is asked once. What cannot be found is `unknown`, with the reason.
    """
    repositories: dict[Path, Source] = {}
    return CodeUnderTest(
        generators={name: _source(file, repositories) for name, file in generators.items()},
        suite=_source(suite_file, repositories),
    )


def loaded_code(noted: dict[str, Any], file: str) -> dict[str, Any]:
    """Returns the identity of the code under test, as this process has loaded it.

    A class may come from another place in an environment of its own, or may have been edited since
    the run began; then its revision is found again, once in a process.
    """
    before = noted.get("generator")
    if before is None or not file:
        return noted
    loaded = _loaded(file)
    if (before["file"], before["content"]) == (loaded.file, loaded.content):
        return noted
    return {**noted, "generator": _source_of(file).model_dump(mode="json")}


@functools.cache
def _loaded(file: str) -> Source:
    path = Path(file).absolute()
    return Source(file=str(path), content=_content(path))


@functools.cache
def _source_of(file: str) -> Source:
    return _source(file, {})


def recorded_code(provenance: Mapping[str, Any], benchmark: str) -> Source:
    """Returns the code under test of a record, which is what captures are filed by.

    That is the file with the benchmark class. Of a built-in it is the suite file: the code of this
    project is not what is under test.
    """
    code = provenance.get("code")
    if not isinstance(code, Mapping):
        return Source(reason="the record does not say")
    built_in = is_builtin(benchmark)
    try:
        return Source.model_validate(code.get("suite" if built_in else "generator"), strict=False)
    except pydantic.ValidationError:
        return Source(reason="the record does not say")


def _source(file: str, repositories: dict[Path, Source]) -> Source:
    """Returns the revision of a file; `repositories` keeps what was asked, by root."""
    if not file or "://" in file:
        return Source(file=file, reason="it is no file of this machine")
    path = Path(file).absolute()
    content = _content(path)
    if not content:
        return Source(file=str(path), reason="the file cannot be read")
    found = _in_repository(path.resolve(), repositories)
    installed = {} if found.known else _distribution(path)
    return found.model_copy(update={"file": str(path), "content": content, **installed})


def _in_repository(path: Path, repositories: dict[Path, Source]) -> Source:
    """Returns the state of the repository that holds a file."""
    root = ask_git(path.parent, "rev-parse", "--show-toplevel")
    if not root.ok:
        return Source(reason=root.reason)
    top = Path(root.text)
    tracked = ask_git(path.parent, "ls-files", "--", path.name)
    if not tracked.ok:
        return Source(reason=tracked.reason)
    if not tracked.text and ask_git(path.parent, "check-ignore", "-q", "--", path.name).ok:
        return Source(reason=f"the repository {top} ignores the file")  # such as an environment
    if top not in repositories:
        repositories[top] = _repository(top)
    found = repositories[top]
    inside: dict[str, Any] = {}
    if path.is_relative_to(top):
        inside["path"] = path.relative_to(top).as_posix()
    if found.known and not tracked.text:
        digest = hashlib.sha256(f"{found.changes} {_content(path)}".encode()).hexdigest()
        inside |= {"dirty": True, "changes": digest}
    return found.model_copy(update=inside)


def _repository(top: Path) -> Source:
    """Returns the facts that are the same for each file of a repository."""
    commit = ask_git(top, "rev-parse", "--verify", "HEAD")
    if not commit.ok:
        return Source(reason=commit.reason)
    with ThreadPoolExecutor(_AT_ONCE, "git") as threads:
        changes = threads.submit(_changes, top)
        describe = threads.submit(ask_git, top, "describe", "--tags", "--always")
        tags = threads.submit(ask_git, top, "tag", "--points-at", "HEAD")
        branch = threads.submit(ask_git, top, "symbolic-ref", "--quiet", "--short", "HEAD")
        url = _url(top)
    dirty, digest = changes.result()
    return Source(
        commit=commit.text,
        dirty=dirty,
        changes=digest,
        describe=describe.result().text,
        tags=tuple(tags.result().text.split()),
        branch=branch.result().text,
        remote=without_credentials(url),
    )


def _url(top: Path) -> str:
    """Returns the address of the remote `origin`, or of the first one; empty without any."""
    remotes = ask_git(top, "remote").text.split()
    remote = next((name for name in remotes if name == "origin"), next(iter(remotes), ""))
    return ask_git(top, "config", "--get", f"remote.{remote}.url").text if remote else ""


def _changes(top: Path) -> tuple[bool | Literal["unknown"], str]:
    """Returns whether a repository has changes that no commit has, and their digest.

    Of files that are not tracked only Python counts: run directories lie in repositories too.
    """
    diff = ask_git(top, "diff", "HEAD", "--binary", "--no-color", "--no-ext-diff", "--no-textconv")
    others = ask_git(top, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    if not (diff.ok and others.ok):
        return UNKNOWN, ""
    names = sorted(filter(None, others.text.split("\0")))
    if not (diff.text or names):
        return False, ""
    contents = "".join(f"{name} {_content(top / name)}\n" for name in names)
    return True, hashlib.sha256(f"{diff.digest}\n{contents}".encode()).hexdigest()


def without_credentials(url: str) -> str:
    """Returns the address of a remote without user, password and query."""
    return _USER.sub(lambda found: found.group(1) or "", url).partition("?")[0]


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(read_at_most(path)).hexdigest()
    except OSError:
        return ""


def _distribution(path: Path) -> dict[str, str]:
    """Returns name and version of the distribution that installed a file; nothing for others."""
    for site in path.parents:
        if site.name not in ("site-packages", "dist-packages"):
            continue
        inside = path.relative_to(site)
        top = inside.parts[0].removesuffix(".py")
        for name in importlib.metadata.packages_distributions().get(top, ()):
            files = importlib.metadata.files(name) or ()
            if any(file.as_posix() == inside.as_posix() for file in files):
                return {"package": name, "version": importlib.metadata.version(name)}
    return {}


_SECONDS: Final = 20
"""A repository may lie on a slow file system; nothing waits longer for what is only noted."""
_OF_ANOTHER: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables by which a hook of one repository would have it answer for another."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer of git and its digest, or the reason in one line why there is none."""

    ok: bool
    text: str = ""
    digest: str = ""
    reason: str = ""


def ask_git(directory: Path, *arguments: str) -> Answer:
    """Asks git about the repository of a directory; that it is absent is an answer too.

    Nothing is written into the repository, the index included.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    try:
        process = subprocess.run(
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - wherever git is installed
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return Answer(ok=False, reason="git is not installed")
    except subprocess.TimeoutExpired:
        return Answer(ok=False, reason=f"git took more than {_SECONDS} s")
    except OSError as error:
        return Answer(ok=False, reason=f"git cannot be run: {error.strerror}")
    if process.returncode != 0:
        said = process.stderr.decode(errors="replace").strip().splitlines()
        return Answer(ok=False, reason=said[0] if said else f"git ended with {process.returncode}")
    return Answer(
        ok=True,
        text=process.stdout.decode(errors="replace").rstrip("\n"),
        digest=hashlib.sha256(process.stdout).hexdigest(),
    )
