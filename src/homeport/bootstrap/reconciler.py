"""What reconcilers of bootstrap configs share: whom a config is for, and the Secret with its data found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachinePool
from homeport.api.meta import Object
from homeport.bootstrap.owner import Owner, owner_of
from homeport.bootstrap.scope import BootstrapScope, is_created
from homeport.bootstrap.secret import refuse_foreign
from homeport.bootstrap.token import SECRET
from homeport.capi.name import CERTIFICATES_EXPIRY, CLUSTER_NAME_LABEL, Reason
from homeport.capi.object.ownership import OwnedElsewhere, is_controlled_by, owner_patch, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Terminal, Wait

SECRET_METADATA = metadata_only(SECRET)
SECRETS = Query(labels=CLUSTER_NAME_LABEL)

O = TypeVar("O", bound=Object)
S = TypeVar("S", bound=BootstrapScope[Any])


class BootstrapReconciler(CapiReconciler[O, S]):
    waits_are_events = True
    rests = True

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        informers = manager.informers
        self._machines = informers.get(Machine).cache
        self._pools = informers.get(MachinePool).cache
        self._clusters = informers.get(Cluster).cache
        self._secrets = informers.get(SECRET_METADATA, SECRETS).cache

    def predicate(self, old: O | None, new: O | None) -> bool:
        """Our own status patches need no look."""
        if old is None or new is None:
            return True
        a, b = old.metadata, new.metadata
        return (
            a.generation != b.generation
            or a.owner_references != b.owner_references
            or _asked(a.annotations) != _asked(b.annotations)
            or (is_created(old) and not is_created(new))
        )

    def cluster_of(self, scope: S) -> Cluster:
        return scope.cluster

    def _placed(self, obj: O) -> tuple[Owner, Cluster] | None:
        """None without an owner and its Cluster: whoever takes it, or the Cluster when it comes, wakes us."""
        owner = owner_of(obj, self._machines, self._pools)
        cluster = None if owner is None else self._clusters.get(Key(obj.metadata.namespace, owner.cluster_name))
        return None if owner is None or cluster is None else (owner, cluster)

    async def _await_infrastructure(self, scope: S) -> Wait | None:
        if scope.cluster.status.initialization.infrastructure_provisioned:
            return None
        return Wait(
            Reason.WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            f"waiting for the infrastructure of Cluster {scope.cluster.metadata.name!r}",
            quiet=True,
        )

    async def _restore(self, scope: S) -> Wait | None:
        """Status is lost when objects are moved or restored; the Secret or the owner knows that there are data."""
        secret = self._secrets.get(scope.key)
        try:
            if secret is not None:
                refuse_foreign(scope.object, secret)
            self._find_data(scope, secret)
            if secret is not None:
                await self._own(scope, secret)
        except OwnedElsewhere as error:
            raise Terminal("SecretNameTaken", str(error)) from error
        return None

    def _find_data(self, scope: S, secret: Any) -> None:
        named = scope.owner.data_secret_name
        if scope.created:
            if secret is None and self._lost(scope):
                scope.object.status.data_secret_name = ""
        elif named:
            scope.finish(named)
        elif secret is not None and is_controlled_by(secret, scope.object):
            scope.finish(scope.key.name)  # we were stopped between Secret and status

    def _lost(self, scope: S) -> bool:
        """Our Secret was deleted before anybody could read it: it is made once more."""
        ours = scope.object.status.data_secret_name == scope.key.name
        return ours and not scope.owner.provisioned and not scope.owner.joined and not scope.owner.data_secret_name

    async def _own(self, scope: S, secret: Any) -> None:
        """Backups drop owner references; without one the Secret would outlive its config."""
        if scope.created and not is_controlled_by(secret, scope.object):
            patch = owner_patch(secret, owner_reference(scope.object, controller=True))
            await self.client.patch(SECRET, scope.key, MergePatch(patch), self._write)


def _asked(annotations: Mapping[str, str]) -> dict[str, str]:
    """Without what a control plane notes for the Machine."""
    return {name: value for name, value in annotations.items() if name != CERTIFICATES_EXPIRY}
