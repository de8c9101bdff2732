"""What a provider brings to be held to the conformance suite: its controllers, its manifests, and hands in its vendor.

One `Vendor` is one simulated endpoint. The suite knows vendors by this protocol alone; a provider joins by an adapter in
`conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from homeport.api.meta import Object
from homeport.capi.capi import Capi
from homeport.client.protocol import Client
from homeport.runtime.clock import Clock
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks

Verb = Literal["create", "power-on", "delete", "read"]
VERBS: tuple[Verb, ...] = ("create", "power-on", "delete", "read")
Json = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """A machine at the vendor."""

    id: str
    name: str
    on: bool
    addresses: tuple[str, ...]


class Vendor(Protocol):
    """Everything that changes the vendor happens at once and behind the controllers' back."""

    cluster_kind: type[Object]
    machine_kind: type[Object]
    connection: str  # the condition of InfraClusters that tells whether the vendor can be reached
    created: list[str]  # names of machines in the order in which they came to be
    verbs: frozenset[Verb]  # what is a request of its own: some machines are made powered on
    free_addresses: tuple[str, ...]  # of the machines' network, that nobody gives out by himself

    def definitions(self) -> Iterable[Mapping[str, Any]]: ...
    def register(self, hooks: Hooks, client: Client) -> None: ...
    def install(self, manager: Manager, capi: Capi | None = None) -> None: ...
    def credentials(self, password: str = "") -> Json:
        """The Secret of users; '' is the password that the endpoint takes at the beginning."""

    def infra_cluster(self, name: str) -> Json: ...
    def infra_machine(self, name: str) -> Json: ...

    # -- looking -----------------------------------------------------------------------------------------------

    def machines(self) -> list[Found]: ...
    def leftovers(self, cluster: str) -> list[str]:
        """Everything else that was made for a cluster."""

    def requests(self) -> int: ...

    # -- trouble -----------------------------------------------------------------------------------------------

    def refuse(self, status: int, verb: Verb | Literal[""] = "", *, times: int | None = None) -> None: ...
    def throttle(self, seconds: float, *, times: int) -> None: ...
    def lose_answer(self, verb: Verb, when: Literal["before", "after"], *, times: int = 1) -> None: ...
    def answer_late(self, verb: Verb, seconds: float) -> None: ...
    def fail_task(self, verb: Verb, message: str, *, times: int | None = None) -> None: ...
    def hang_task(self, verb: Verb, seconds: float | None) -> None: ...
    def delay_address(self, seconds: float | None) -> None: ...
    def heal(self) -> None: ...

    # -- hands in the vendor -----------------------------------------------------------------------------------

    def slow(self, seconds: float) -> None:
        """Every task takes this long from now on."""

    def plant(self, name: str) -> str:
        """A machine that somebody else made; its id."""

    def plant_orphan(self, cluster: Object, name: str) -> str:
        """A machine with the mark of this InfraCluster, made for an object that is gone."""

    def destroy(self, name: str) -> None: ...
    def switch_off(self, name: str) -> None: ...
    def readdress(self, name: str, *, lost: bool = False) -> None: ...
    def fill(self) -> Callable[[], None]:
        """No room is left; the result makes room again."""

    def hide_image(self) -> Callable[[], None]:
        """The image of the manifests is gone; the result imports it."""

    def change_password(self, password: str) -> None: ...


Open = Callable[[Clock], AbstractAsyncContextManager[Vendor]]
