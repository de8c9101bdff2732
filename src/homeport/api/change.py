"""What the plane's API server answers at `/homeport/changes`."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True):
    """One write that succeeded, and whose it was. `time` in seconds since 1970. `namespace_uid` tells a namespace from
    a later one of the same name; '' if it is not known."""

    time: float
    user: str
    verb: str
    manager: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    namespace_uid: str = ""
