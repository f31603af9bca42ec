"""Gives users and groups that have no name their number for one.

In a container a user id is often in no `/etc/passwd`, and then `etils.epath` fails to stat any file
of that user (https://github.com/google/etils/issues/790), and with it every load of Orbax. The
image imports this module whenever Python starts.
"""

import grp
import pwd

_named_user = pwd.getpwuid
_named_group = grp.getgrgid


def _user(uid: int) -> pwd.struct_passwd:
    try:
        return _named_user(uid)
    except KeyError:
        return pwd.struct_passwd((str(uid), "x", uid, uid, "", "/", "/bin/sh"))


def _group(gid: int) -> grp.struct_group:
    try:
        return _named_group(gid)
    except KeyError:
        return grp.struct_group((str(gid), "x", gid, []))


pwd.getpwuid = _user
grp.getgrgid = _group
