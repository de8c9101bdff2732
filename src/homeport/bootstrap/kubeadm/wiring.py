"""What wakes a KubeadmConfig. Everything it may wait for is watched, so that nobody has to poll."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachinePool
from homeport.bootstrap.kubeadm.lock import CONFIG_MAP, LOCKS, cluster_of_lock
from homeport.bootstrap.kubeadm.owner import from_machine, from_pool
from homeport.bootstrap.kubeadm.reconciler import SECRET_METADATA, SECRETS, KubeadmConfigReconciler
from homeport.bootstrap.kubeadm.scope import is_created
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from homeport.capi.remote.pki import EXTERNAL_ETCD, secret_name
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, labels_of
from homeport.runtime.manager import Manager

_INDEX = "cluster"


def install(manager: Manager, capi: Capi) -> None:
    reconciler = KubeadmConfigReconciler(manager, capi)
    configs = reconciler.objects
    configs.add_index(_INDEX, _cluster_index)
    controller = (
        reconciler.controller.map(Cluster, lambda cluster: _of_cluster(configs, cluster), predicate=_cluster_changed)
        .map(Machine, lambda machine: _config_key(machine, machine.spec.bootstrap), predicate=_machine_changed)
        .map(MachinePool, lambda pool: _config_key(pool, pool.spec.template.spec.bootstrap), predicate=_pool_changed)
        # The machine that held the lock is gone: another one may begin.
        .map(Machine, lambda machine: _waiting(configs, machine), predicate=_control_plane_gone)
        .map(CONFIG_MAP, lambda lock: _freed(configs, lock), predicate=lambda old, new: new is None, query=LOCKS)
        .map(SECRET_METADATA, lambda secret: _by_secret(configs, secret), predicate=_secret_changed, query=SECRETS)
    )
    manager.add(controller)

    def connection_changed(cluster: Key) -> None:
        if capi.remotes.get(cluster) is None:
            return
        for key in _unfinished(configs, cluster.namespace, cluster.name):
            controller.wake(key)

    capi.remotes.follow(connection_changed)


# -- which configs -------------------------------------------------------------------------------------------------


def _cluster_index(config: KubeadmConfig) -> Iterable[str]:
    name = config.metadata.labels.get(CLUSTER_NAME_LABEL)
    return (f"{config.metadata.namespace}/{name}",) if name else ()


def _of_cluster(configs: Cache[KubeadmConfig], cluster: Cluster) -> Iterable[Key]:
    found = configs.by(_INDEX, f"{cluster.metadata.namespace}/{cluster.metadata.name}")
    return [Key(each.metadata.namespace, each.metadata.name) for each in found]


def _unfinished(configs: Cache[KubeadmConfig], namespace: str, cluster: str) -> Iterable[Key]:
    found = configs.by(_INDEX, f"{namespace}/{cluster}")
    return [Key(namespace, each.metadata.name) for each in found if not is_created(each)]


def _waiting(configs: Cache[KubeadmConfig], obj: Any) -> Iterable[Key]:
    return _unfinished(configs, obj.metadata.namespace, labels_of(obj).get(CLUSTER_NAME_LABEL, ""))


def _freed(configs: Cache[KubeadmConfig], lock: Any) -> Iterable[Key]:
    cluster = cluster_of_lock(lock.name)
    return _unfinished(configs, lock.namespace, cluster) if cluster else ()


def _by_secret(configs: Cache[KubeadmConfig], secret: Any) -> Iterable[Key]:
    namespace, name = secret.metadata.namespace, secret.metadata.name
    own = Key(namespace, name)
    return (own,) if own in configs else _waiting(configs, secret)


def _config_key(owner: Any, bootstrap: Any) -> Iterable[Key]:
    ref, kind = bootstrap.config_ref, KubeadmConfig.__resource__
    if ref is None or (ref.api_group, ref.kind) != (kind.group, kind.kind):
        return ()
    return (Key(owner.metadata.namespace, ref.name),)


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


def _secret_changed(old: Any, new: Any) -> bool:
    """A certificate that came, or anything that went. That our own Secrets come needs no look."""
    if new is None:
        return True
    name, cluster = new.metadata.name, labels_of(new).get(CLUSTER_NAME_LABEL, "")
    return any(name == secret_name(cluster, purpose) for purpose in EXTERNAL_ETCD)
