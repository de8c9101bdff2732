"""What wakes the bootstrap configs of one kind. Everything they may wait for is watched, so that nobody has to poll."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachinePool
from homeport.bootstrap.lock import CONFIG_MAP, LOCKS, cluster_of_lock
from homeport.bootstrap.owner import from_machine, from_pool
from homeport.bootstrap.reconciler import SECRET_METADATA, SECRETS
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from homeport.capi.remote.pki import Purpose, secret_name
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, key_of, labels_of
from homeport.runtime.controller import Controller

_INDEX = "cluster"


class ConfigKeys:
    """Finds the configs that an event concerns. `waits` tells which of a cluster may wait for something of it."""

    def __init__(
        self, configs: Cache[Any], kind: type[Any], waits: Callable[[Any], bool] = lambda config: True
    ) -> None:
        self._configs = configs
        self._kind = kind.__resource__
        self._waits = waits
        configs.add_index(_INDEX, _cluster_index)

    def of_cluster(self, cluster: Cluster) -> list[Key]:
        return [Key(cluster.metadata.namespace, each.metadata.name) for each in self._found(key_of(cluster))]

    def waiting(self, namespace: str, cluster: str) -> list[Key]:
        found = self._found(Key(namespace, cluster))
        return [Key(namespace, each.metadata.name) for each in found if self._waits(each)]

    def of_sibling(self, machine: Machine) -> list[Key]:
        return self.waiting(machine.metadata.namespace, machine.spec.cluster_name)

    def of_lock(self, lock: Any) -> list[Key]:
        cluster = cluster_of_lock(lock.name)
        return self.waiting(lock.namespace, cluster) if cluster else []

    def of_secret(self, secret: Any) -> list[Key]:
        own = Key(secret.metadata.namespace, secret.metadata.name)
        return [own] if own in self._configs else self.waiting(own.namespace, _cluster_label(secret))

    def of_machine(self, machine: Machine) -> list[Key]:
        return self._referred(machine, machine.spec.bootstrap)

    def of_pool(self, pool: MachinePool) -> list[Key]:
        return self._referred(pool, pool.spec.template.spec.bootstrap)

    def _found(self, cluster: Key) -> Iterable[Any]:
        return self._configs.by(_INDEX, f"{cluster.namespace}/{cluster.name}")

    def _referred(self, owner: Any, bootstrap: Any) -> list[Key]:
        ref = bootstrap.config_ref
        if ref is None or (ref.api_group, ref.kind) != (self._kind.group, self._kind.kind):
            return []
        return [Key(owner.metadata.namespace, ref.name)]


def connect(capi: Capi, controller: Controller, keys: ConfigKeys, certificates: Iterable[Purpose]) -> None:
    """`certificates`: those that a config waits for."""
    purposes = tuple(certificates)

    def secret_changed(old: Any, new: Any) -> bool:
        """A certificate that came, or anything that went. That our own Secrets come needs no look."""
        if new is None:
            return True
        name, cluster = new.metadata.name, _cluster_label(new)
        return any(name == secret_name(cluster, purpose) for purpose in purposes)

    def connection_changed(cluster: Key) -> None:
        if capi.remotes.get(cluster) is not None:
            for key in keys.waiting(cluster.namespace, cluster.name):
                controller.wake(key)

    controller.map(Cluster, keys.of_cluster, predicate=_cluster_changed)
    controller.map(Machine, keys.of_machine, predicate=_machine_changed)
    controller.map(MachinePool, keys.of_pool, predicate=_pool_changed)
    controller.map(SECRET_METADATA, keys.of_secret, predicate=secret_changed, query=SECRETS)
    capi.remotes.follow(connection_changed)


def connect_lock(controller: Controller, keys: ConfigKeys) -> None:
    """The machine that held the lock is gone, or gave it back: another one may begin."""
    controller.map(Machine, keys.of_sibling, predicate=_control_plane_gone)
    controller.map(CONFIG_MAP, keys.of_lock, predicate=lambda old, new: new is None, query=LOCKS)


def _cluster_index(config: Any) -> Iterable[str]:
    name = config.metadata.labels.get(CLUSTER_NAME_LABEL)
    return (f"{config.metadata.namespace}/{name}",) if name else ()


def _cluster_label(obj: Any) -> str:
    return labels_of(obj).get(CLUSTER_NAME_LABEL, "")


# -- which changes -------------------------------------------------------------------------------------------------


def _cluster_changed(old: Cluster | None, new: Cluster | None) -> bool:
    return new is not None and (old is None or _cluster_view(old) != _cluster_view(new))


def _cluster_view(cluster: Cluster) -> tuple[Any, ...]:
    status, endpoint = cluster.status.initialization, cluster.spec.control_plane_endpoint
    return (
        cluster.spec.paused,
        status.infrastructure_provisioned,
        status.control_plane_initialized,
        endpoint.host,
        endpoint.port,
    )


def _machine_changed(old: Machine | None, new: Machine | None) -> bool:
    return new is not None and (old is None or from_machine(old) != from_machine(new))


def _pool_changed(old: MachinePool | None, new: MachinePool | None) -> bool:
    return new is not None and (old is None or from_pool(old) != from_pool(new))


def _control_plane_gone(old: Machine | None, new: Machine | None) -> bool:
    return new is None and old is not None and CONTROL_PLANE_LABEL in old.metadata.labels
