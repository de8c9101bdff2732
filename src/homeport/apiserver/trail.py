"""Which user wrote which object: the newest writes, for timelines. Kubernetes keeps on an object which program wrote a
field, not whose credential it had.

Kept in memory and, through the machinery of the audit log, in a file, from which a restart goes on. It outlives
namespaces, too: whoever has a new one of the same name does not learn what happened in the old one.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from homeport.api.change import Change
from homeport.apiserver.audit import AuditLog, Entry
from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.request import Context, User

MOST = 5_000
MOST_SHOWN = 500
_MAX_BYTES = 4 * 1024 * 1024
_MANAGER = "homeport.dev/field-manager"
_NAMESPACE_UID = "homeport.dev/namespace-uid"
# Written all the time, by programs, and in no timeline.
_UNTOLD = frozenset({"events", "leases", "status", "tokenreviews", "certificatesigningrequests"})


class Trail:
    """`note` a write, `visible` gives them to a user who may read the objects. `close` at the end."""

    def __init__(self, path: Path, now: Callable[[], float], uid_of: Callable[[str], str]) -> None:
        """`uid_of` a namespace; '' if there is none of this name."""
        self._now = now
        self._uid_of = uid_of
        self._changes = deque(_read(path), maxlen=MOST)
        self._log = AuditLog(path, max_bytes=_MAX_BYTES, keep=1)

    def note(
        self,
        ctx: Context,
        verb: str,
        kind: tuple[str, str, str],
        namespace: str,
        name: str,
        actor: User | None = None,
    ) -> None:
        """`kind`: group, resource and subresource. `actor`: who impersonates the user of the context. Only of users and
        service accounts: the plane's own parts write all the time."""
        group, resource, subresource = kind
        if not ctx.wrote or _is_own(actor or ctx.user) or resource in _UNTOLD or subresource in _UNTOLD:
            return
        now = self._now()
        user = ctx.user.name if actor is None else f"{ctx.user.name}, impersonated by {actor.name}"
        uid = self._uid_of(namespace) if namespace else ""
        self._changes.append(Change(now, user, verb, ctx.manager, group, resource, subresource, namespace, name, uid))
        more = {_MANAGER: ctx.manager, _NAMESPACE_UID: uid}
        entry = Entry("", "", verb, User(user), "", 200, now, now, annotations=more)
        entry.group, entry.resource, entry.subresource = group, resource, subresource
        entry.namespace, entry.name = namespace, name
        self._log.write(entry)

    def visible(self, may: Callable[[Attributes], bool], user: User, namespace: str = "") -> list[Change]:
        """The newest first, and no more than a timeline shows."""

        @functools.cache
        def is_present(where: str, uid: str) -> bool:
            return bool(uid) and self._uid_of(where) == uid

        def readable(each: Change) -> bool:
            """Rights in a namespace are rights in the present one; what is older is for those who may read all."""
            where = each.namespace if is_present(each.namespace, each.namespace_uid) else ""
            return may(Attributes(user, "get", each.group, "", each.resource, "", where, each.name))

        chosen = (each for each in reversed(self._changes) if not namespace or each.namespace == namespace)
        return list(itertools.islice(filter(readable, chosen), MOST_SHOWN))

    def close(self) -> None:
        self._log.close()


def _is_own(user: User) -> bool:
    return user.name.startswith("system:") and not user.name.startswith("system:serviceaccount:")


def _read(path: Path) -> Iterator[Change]:
    """What the files hold. A line that a crash cut off is left out."""
    for file in (*sorted(path.parent.glob(f"{path.stem}-*{path.suffix}")), path):
        for line in file.read_bytes().splitlines() if file.exists() else ():
            try:
                found = msgspec.json.decode(line)
                yield _change(found, found["objectRef"])
            except (msgspec.DecodeError, KeyError, TypeError, ValueError):
                continue


def _change(found: dict[str, Any], about: dict[str, str]) -> Change:
    more = found.get("annotations") or {}
    return Change(
        datetime.fromisoformat(found["stageTimestamp"]).timestamp(),
        str(found["user"]["username"]),
        str(found["verb"]),
        str(more.get(_MANAGER, "")),
        about.get("apiGroup", ""),
        about.get("resource", ""),
        about.get("subresource", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        str(more.get(_NAMESPACE_UID, "")),
    )
