"""One bootstrap config in work, with whom it is for."""

from __future__ import annotations

from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.bootstrap.owner import Owner
from homeport.capi.contract import Endpoint
from homeport.client.protocol import Key
from homeport.runtime.reconciler import Scope

O = TypeVar("O", bound=Object)


class BootstrapScope(Scope[O]):
    def __init__(self, config: O, owner: Owner, cluster: Cluster) -> None:
        super().__init__(config)
        self.owner = owner
        self.cluster = cluster

    @property
    def cluster_key(self) -> Key:
        return Key(self.cluster.metadata.namespace, self.cluster.metadata.name)

    @property
    def created(self) -> bool:
        return is_created(self.object)

    @property
    def initialized(self) -> bool:
        return bool(self.cluster.status.initialization.control_plane_initialized)

    @property
    def endpoint(self) -> str:
        """Of the control plane, '' while it has none."""
        given = self.cluster.spec.control_plane_endpoint
        return str(Endpoint(given.host, given.port)) if given.host and given.port else ""

    def finish(self, secret_name: str) -> None:
        """The data are there, in this Secret."""
        status: Any = self.object.status  # type: ignore[attr-defined]
        status.data_secret_name = secret_name
        status.initialization.data_secret_created = True


def is_created(config: Any) -> bool:
    """Of a config of any bootstrap kind."""
    return bool(config.status.initialization.data_secret_created and config.status.data_secret_name)
