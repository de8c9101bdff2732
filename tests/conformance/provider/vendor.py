"""What the conformance suite needs to test a provider: the provider's component, manifests, and control over a simulator.

The suite knows vendors through this protocol only. A provider joins with an adapter and one line in `conftest.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

import pytest

from homeport.api.meta import Object
from homeport.capi.component import Component
from homeport.client.dial import DialOptions
from homeport.infra.protocol import Conditions
from homeport.runtime.clock import Clock

# A request that changes or reads one machine.
Verb = Literal["create", "power-on", "delete", "read"]
Json = dict[str, Any]
Undo = Callable[[], Awaitable[None]]


def cannot(reason: str) -> NoReturn:
    """Called by an adapter for what its vendor does not have: the test is skipped, and the report shows the reason."""
    pytest.skip(reason)


@dataclass(frozen=True)
class Found:
    """A machine at the vendor."""

    id: str
    name: str
    on: bool
    addresses: tuple[str, ...]


class Vendor(Protocol):
    """One simulated endpoint of a vendor, and the provider that talks to it.

    Changes have taken effect when the call returns, and the provider is not told about them. A method whose fault or change the vendor
    does not have calls `cannot` with the reason.
    """

    component: Component
    dial: DialOptions  # how the provider reaches the endpoint: the CA of its certificate
    cluster_kind: type[Object]
    machine_kind: type[Object]
    conditions: Conditions
    created: list[str]  # names of all machines that were ever created, in order; those of `create_*` here are left out

    # -- manifests ---------------------------------------------------------------------------------------------

    def credentials(self, password: str = "") -> Json:
        """The Secret that InfraClusters refer to. '' is the password that the endpoint accepts at the start."""

    def infra_cluster(self, name: str) -> Json:
        """With an endpoint in spec.controlPlaneEndpoint that is free, and another one for each name."""

    def infra_machine(self, name: str) -> Json: ...

    def platform_part(self) -> Json:
        """The provider's part of a ProviderConfig, for machines like `infra_machine`. `cannot`: it serves no platform."""

    @property
    def free_addresses(self) -> Sequence[str]:
        """At least two addresses of the machines' network that the vendor does not assign to machines by itself.
        `cannot`: machines get no addresses from pools."""

    # -- state of the vendor -----------------------------------------------------------------------------------

    def machines(self) -> list[Found]:
        """All machines, whoever created them."""

    def cluster_objects(self, cluster: str) -> list[str]:
        """Everything besides machines that was created for a cluster. Empty when the cluster is gone."""

    def require_cluster_objects(self) -> None:
        """`cannot`: the provider creates nothing for a cluster besides its machines."""

    def requests(self) -> int:
        """How many requests the endpoint has received."""

    # -- faults ------------------------------------------------------------------------------------------------
    # `times` is how many requests or operations are affected; None: all, until `clear_faults`.

    def refuse(self, status: int, verb: Verb | Literal[""] = "", *, times: int | None = None) -> None:
        """Requests are answered with this HTTP status and change nothing. '' affects all requests."""

    def throttle(self, seconds: float, *, times: int) -> None:
        """Requests are answered with 429 and `Retry-After`."""

    def lose_reply(self, verb: Verb, when: Literal["before", "after"], *, times: int = 1) -> None:
        """The connection ends without a reply, before or after the request has taken effect."""

    def delay_reply(self, verb: Verb, seconds: float) -> None:
        """The next such request is answered this much later."""

    def fail_operation(self, verb: Verb, message: str, *, times: int | None = None) -> None:
        """The request is accepted, and what it started fails with this message."""

    def hang_operation(self, verb: Verb, seconds: float | None) -> None:
        """The next request is accepted, and what it started takes this long. None: for ever."""

    def delay_address(self, seconds: float | None) -> None:
        """Machines report addresses this much later, as with a slow boot. None: never."""

    def clear_faults(self) -> None: ...

    # -- changes by others -------------------------------------------------------------------------------------

    def slow_operations(self, seconds: float) -> None:
        """Each creation, power change and deletion takes this long from now on."""

    async def create_foreign(self, name: str) -> str:
        """Creates a machine as another user of the vendor does, without marks; gives its id."""

    async def create_orphan(self, cluster: Object, name: str) -> str:
        """Creates a machine with the marks of this InfraCluster, for an object that does not exist; gives its id."""

    async def delete_machine(self, name: str) -> None: ...
    async def power_off(self, name: str) -> None: ...
    async def power_on(self, name: str) -> None: ...
    async def change_address(self, name: str, *, lost: bool = False) -> None:
        """The machine gets another address; `lost`: it reports none any more."""

    async def fill_hosts(self) -> Undo:
        """Leaves no room for another machine. The result makes room again."""

    async def remove_image(self) -> Undo:
        """Removes the image that `infra_machine` refers to. The result brings it back."""

    async def restart(self) -> None:
        """The endpoint restarts at the same address: its connections and sessions end, and its state stays."""

    async def change_password(self, password: str) -> None:
        """The endpoint accepts only this password from now on, and ends all sessions."""


Open = Callable[[Clock], AbstractAsyncContextManager[Vendor]]
