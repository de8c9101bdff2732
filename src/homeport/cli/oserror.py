"""What the operating system refuses, as one sentence with the cure."""

from __future__ import annotations

import errno

_NO_SPACE = "free some space there, then run the command again; no stored data is lost"
_ELSEWHERE = "choose a directory that you can write to, for example with --data DIR"
_CURES = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: "the file size limit is reached: raise it (ulimit -f), then run the command again",
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: f"correct its permissions, or {_ELSEWHERE}",
    errno.EPERM: f"correct its permissions, or {_ELSEWHERE}",
    errno.ENOENT: f"it does not exist and can't be created; {_ELSEWHERE}",
    errno.ENOTDIR: f"part of the path is a file, not a directory; {_ELSEWHERE}",
    errno.EISDIR: "name a file",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.EIO: "check the disk",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then run the command again",
    errno.ENFILE: "close other programs, then run the command again",
}


def explain(error: OSError) -> str:
    """`PATH: Read-only file system: choose ...`"""
    what = error.strerror or str(error)
    where = f"{error.filename2 or error.filename}: " if error.filename else ""
    cure = _CURES.get(error.errno or 0, "")
    return f"{where}{what}{f': {cure}' if cure else ''}"
