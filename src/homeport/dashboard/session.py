"""Who is logged in: single-use codes, and sessions whose key has two halves.

Cookies ignore ports, so a cookie alone proves nothing: the second half is in the storage of the page's origin and comes
with each request. Everything is in memory; a restart logs everybody out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from homeport.client.config import Config

T = TypeVar("T")

CODE_SECONDS = 60.0
IDLE_SECONDS = 3600.0
LONGEST_SECONDS = 12 * 3600.0
MOST_SESSIONS = 64
MOST_CODES = 64


@dataclass(frozen=True, slots=True)
class Login:
    """A user as the API server knows them, and the connection that proves it."""

    user: str
    config: Config = field(repr=False)


@dataclass(slots=True, eq=False)
class Session:
    """One logged-in browser. `end` is called for everything that belongs to it when it ends."""

    login: Login
    cookie: str = field(repr=False)
    key: str = field(repr=False)
    begun: float
    seen: float
    ending: list[Callable[[], None]] = field(default_factory=list, repr=False)
    why: str = ""  # it ended
    now: Callable[[], float] = field(default=time.monotonic, repr=False)

    def touch(self) -> None:
        """Somebody uses it, or looks at a page of it. One that is over stays so, though nobody has ended it yet."""
        if not self.over:
            self.seen = self.now()

    @property
    def over(self) -> str:
        """Why it has lasted long enough, '' if it has not."""
        now = self.now()
        if now - self.begun > LONGEST_SECONDS:
            return f"a session lasts {LONGEST_SECONDS / 3600:.0f} hours at most"
        return "an hour passed without use" if now - self.seen > IDLE_SECONDS else ""

    def end(self, why: str) -> None:
        self.why = why
        ending, self.ending = self.ending, []
        for each in ending:
            each()


class Sessions:
    """All sessions and codes of one server. Halves are looked up by hash, so that timing tells nothing."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._codes: dict[str, tuple[float, Login]] = {}
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def offer(self, login: Login) -> str:
        """A code that opens one session, within a minute."""
        self.sweep()
        while len(self._codes) >= MOST_CODES:
            del self._codes[_surplus(self._codes, lambda code: self._codes[code][1].user)]
        code = secrets.token_urlsafe(16)
        self._codes[_hash(code)] = (self._now() + CODE_SECONDS, login)
        return code

    def redeem(self, code: str) -> Session | None:
        """None: the code is unknown, used or too old."""
        until, login = self._codes.pop(_hash(code), (0.0, None))
        now = self._now()
        if login is None or now > until:
            return None
        self.sweep()
        while len(self._sessions) >= MOST_SESSIONS:
            by_use = sorted(self, key=lambda each: each.seen)
            oldest = _surplus(by_use, lambda each: each.login.user)
            self.end(oldest, f"more than {MOST_SESSIONS} browsers logged in, and this one was used least recently")
        made = Session(login, secrets.token_urlsafe(32), secrets.token_urlsafe(32), now, now, now=self._now)
        self._sessions[_hash(made.cookie)] = made
        return made

    def find(self, cookie: str, key: str) -> Session | None:
        """Both halves must be right."""
        found = self._sessions.get(_hash(cookie))
        if found is None or not hmac.compare_digest(_bytes(found.key), _bytes(key)):
            return None
        if why := found.over:
            self.end(found, why)
            return None
        found.touch()
        return found

    def end(self, session: Session, why: str) -> None:
        self._sessions.pop(_hash(session.cookie), None)
        session.end(why)

    def end_all(self, why: str) -> None:
        for each in self:
            self.end(each, why)
        self._codes.clear()

    def sweep(self) -> None:
        """Ends what is too old."""
        now = self._now()
        self._codes = {code: held for code, held in self._codes.items() if held[0] >= now}
        for each in self:
            if why := each.over:
                self.end(each, why)


def _surplus(held: Iterable[T], user_of: Callable[[T], str]) -> T:
    """The first that belongs to whoever has most of them: nobody can push out the others."""
    found = list(held)
    counts = Counter(map(user_of, found))
    return max(found, key=lambda each: counts[user_of(each)])


def _hash(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()


def _bytes(text: str) -> bytes:
    """Whatever a client sent in a header."""
    return text.encode(errors="surrogateescape")
