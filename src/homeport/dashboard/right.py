"""The rights that open subscriptions depend on: asked for again when the rules of the user change.

The API server checks a right when a watch or a log begins, and not while it is open. One request for each namespace
reads all rules of the user there; only when these differ from those of before is each right looked at again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from homeport.client.errors import ApiError, Forbidden, Unauthorized
from homeport.client.protocol import Client
from homeport.dashboard.contact import Contact
from homeport.runtime.permission import EVERYWHERE, Need, Rules, ask_singly, read_rules

log = structlog.get_logger(__name__)

CHECK_SECONDS = 2.0  # between two looks at the rules of a namespace
SHORTEST_SECONDS = 0.1  # between two looks at any rules: a session may watch many namespaces
DOUBT_SECONDS = 10.0  # where rules do not tell everything, each right is asked for so often
RENEWAL_SECONDS = 300.0  # and elsewhere now and then, whatever the rules say
_AT_ONCE = 8


@dataclass(slots=True, eq=False)
class Held:
    """A right that somebody depends on; `told` is called with whether it exists, first and after each change."""

    need: Need
    told: Callable[[bool], None]
    allowed: bool | None = None
    rules: Rules | None = None  # those under which it was looked at last
    asked: float = field(default_factory=time.monotonic)  # singly; the API server did so when the subscription began


class Rights:
    """`run` checks what is held. `rejected` is called when the API server no longer accepts the credential."""

    def __init__(self, client: Client, rejected: Callable[[], None]) -> None:
        self.contact = Contact()
        self._client = client
        self._rejected = rejected
        self._held: set[Held] = set()
        self._checking: set[str] = set()  # namespaces
        self._answered = False  # whether the server has told anything about rights yet

    def hold(self, need: Need, told: Callable[[bool], None]) -> Held:
        """`drop` ends it."""
        held = Held(need, told)
        self._held.add(held)
        return held

    def drop(self, held: Held) -> None:
        self._held.discard(held)

    async def run(self) -> None:
        """Until it is cancelled, or the credential is rejected."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    namespaces = sorted({each.need.namespace for each in self._held}) or [""]
                    for namespace in namespaces:
                        await asyncio.sleep(max(SHORTEST_SECONDS, CHECK_SECONDS / len(namespaces)))
                        if namespace not in self._checking:  # one that takes long does not hold up the others
                            self._checking.add(namespace)
                            group.create_task(self._check(namespace))
        except* Unauthorized:
            self._rejected()

    async def _check(self, namespace: str) -> None:
        """Raises Unauthorized."""
        held = [each for each in self._held if each.need.namespace == namespace]
        try:
            if not held:
                return
            with self.contact.question():
                rules = await read_rules(self._client, namespace or EVERYWHERE)
            await self._look(held, rules)
        except Unauthorized:
            raise
        except ApiError:
            return  # no answer is no proof that a right is gone
        except Exception:
            log.exception("rights were not checked", namespace=namespace)  # and are with the next answer
        finally:
            self._checking.discard(namespace)

    async def _look(self, held: list[Held], rules: Rules) -> None:
        now = time.monotonic()
        due = now - (RENEWAL_SECONDS if rules.complete else DOUBT_SECONDS)
        singly: list[Held] = []
        for each in held:
            if each.asked <= due:
                singly.append(each)
            elif each.rules == rules:
                continue
            elif rules.complete and rules.left(each.need) is None:
                self._tell(each, rules, allowed=True)
            else:
                singly.append(each)  # an authorizer whose rules are not known may deny what the others allow
        self._answered |= rules != Rules()
        for begin in range(0, len(singly), _AT_ONCE):
            part = singly[begin : begin + _AT_ONCE]
            denied = await self._denied([each.need for each in part])
            for each in part:
                each.asked = now
                self._tell(each, rules, allowed=each.need not in denied)

    async def _denied(self, needs: list[Need]) -> list[Need]:
        """Raises ApiError. A server that has answered such questions and does not allow them any more has taken
        everything from this user; one that never answered them takes nothing away."""
        try:
            denied = await ask_singly(self._client, dict.fromkeys(needs))
        except Forbidden:
            return needs if self._answered else []
        self._answered = True
        return denied

    def _tell(self, held: Held, rules: Rules, *, allowed: bool) -> None:
        held.rules = rules
        if held.allowed is not allowed and held in self._held:
            held.allowed = allowed
            held.told(allowed)
