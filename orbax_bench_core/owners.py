"""Files that this process looks at and makes: owners without a name, and modes.

In a container, and where files come from one, a user id is often in no `/etc/passwd`. `etils.epath`
then fails to stat any file of that user (https://github.com/google/etils/issues/790), and with it
every command and every load of Orbax.
"""

import contextlib
import grp
import os
import pwd
from collections.abc import Iterator
from typing import Final

_named_user = pwd.getpwuid
_named_group = grp.getgrgid
_MOST_OPEN: Final = 0o022
"""The umask of files that others may read and only their owner may write."""


def name_by_number() -> None:
    """Gives users and groups that have no name their number for one, in this process."""
    pwd.getpwuid = _user
    grp.getgrgid = _group


@contextlib.contextmanager
def closed_to_others() -> Iterator[None]:
    """Makes files that others cannot write, unless they are kept from more than that already.

    Executors of pipelines set a umask of 0, and a volume claim is mounted by others as well.
    """
    before = os.umask(_MOST_OPEN)
    os.umask(before | _MOST_OPEN)
    try:
        yield
    finally:
        os.umask(before)


def _user(uid: int) -> pwd.struct_passwd:
    try:
        return _named_user(uid)
    except KeyError:
        import tempfile  # every start of a command would wait for it

        return pwd.struct_passwd((str(uid), "x", uid, uid, "", tempfile.gettempdir(), "/bin/sh"))


def _group(id: int) -> grp.struct_group:  # noqa: A002 - it may be given by that name
    try:
        return _named_group(id)
    except KeyError:
        return grp.struct_group((str(id), "x", id, []))
