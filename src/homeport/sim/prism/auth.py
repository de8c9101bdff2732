"""Who calls: HTTP Basic, API keys, and sessions kept in a cookie until they expire."""

from __future__ import annotations

import base64
import binascii
import hmac
import random
from collections import OrderedDict
from dataclasses import dataclass

from homeport.runtime.clock import Clock
from homeport.sim.engine.call import Call
from homeport.sim.prism.entity import User
from homeport.sim.prism.error import unauthenticated
from homeport.sim.prism.world import World

COOKIE = "NTNX_IGW_SESSION"
SESSION_SECONDS = 15 * 60.0
SESSIONS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    user: str
    expires: float


class Sessions:
    """Known by their cookie; a restart of the simulator ends them all, as on the real thing."""

    def __init__(self, clock: Clock, rng: random.Random, seconds: float = SESSION_SECONDS) -> None:
        self._clock = clock
        self._rng = rng
        self.seconds = seconds
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def open(self, user: str) -> str:
        key = f"{self._rng.getrandbits(256):064x}"
        self._end_old()
        self._sessions[key] = Session(user, self._clock.monotonic() + self.seconds)
        while len(self._sessions) > SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return key

    def _end_old(self) -> None:
        now = self._clock.monotonic()
        while self._sessions and next(iter(self._sessions.values())).expires <= now:
            self._sessions.popitem(last=False)

    def user(self, key: str) -> str:
        found = self._sessions.get(key)
        return found.user if found is not None and found.expires > self._clock.monotonic() else ""

    def end(self, key: str) -> None:
        self._sessions.pop(key, None)

    def end_all(self) -> None:
        self._sessions.clear()


def authenticate(world: World, sessions: Sessions, call: Call) -> tuple[User, bool]:
    """The caller, and whether he showed credentials (then he gets a session)."""
    header = call.headers.get("authorization", "")
    key = call.headers.get("x-ntnx-api-key", "")
    if header:
        user = _by_password(world, header)
    elif key:
        user = next((each for each in world.users if _among(key, each.api_keys)), None)
    else:
        name = sessions.user(call.cookies.get(COOKIE, ""))
        user = world.user(name) if name else None
    if user is None:
        raise unauthenticated()
    return user, bool(header or key)


def _by_password(world: World, header: str) -> User | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user = world.user(name)
    return user if colon and user is not None and _among(password, user.passwords) else None


def _among(given: str, known: tuple[str, ...]) -> bool:
    return any(hmac.compare_digest(given.encode(), each.encode()) for each in known)
