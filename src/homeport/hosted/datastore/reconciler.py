"""DataStore: who uses it, whether it answers, and that it stays while it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homeport.api.steward.v1alpha1 import AnyDataStore, AnyTenantControlPlane
from homeport.client.protocol import Key
from homeport.hosted.datastore.content import access_of, is_ours, read_credentials
from homeport.hosted.datastore.driver import CanRun, check_driver
from homeport.hosted.etcd.dial import DatastoreError, connect
from homeport.hosted.etcd.tenancy import prepare_datastore
from homeport.hosted.flavour import Flavour
from homeport.hosted.tenant.setup import DEFAULT, Connect
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

CHECK_SECONDS = 60.0
RETRY_SECONDS = 10.0
_USED_BY = "datastore"


def datastores_of(tenant: AnyTenantControlPlane) -> Iterable[str]:
    """Those that hold data of a control plane, or are about to."""
    spec = tenant.spec
    names = (spec.data_store or DEFAULT, tenant.status.storage.data_store_name)
    return {each for each in (*names, *(other.data_store for other in spec.data_store_overrides)) if each}


class DataStoreReconciler(ObjectReconciler[AnyDataStore, Scope[AnyDataStore]]):
    field_manager = "homeport-hosted"
    workers = 4

    def __init__(
        self, manager: Manager, flavour: Flavour, *, connect_datastore: Connect = connect, can_run: CanRun
    ) -> None:
        self.kind = flavour.datastore
        self.controller_name = f"{flavour.name}-datastore"
        self.finalizer = flavour.finalizer
        super().__init__(manager)
        self._connect = connect_datastore
        self._can_run = can_run
        self._tenants = manager.informers.get(flavour.tenant).cache
        self._tenants.add_index(_USED_BY, datastores_of)
        self.controller.map(flavour.tenant, lambda tenant: [Key("", each) for each in datastores_of(tenant)])

    def load(self, obj: AnyDataStore) -> Scope[AnyDataStore]:
        return Scope(obj)

    def phases(self, scope: Scope[AnyDataStore]) -> Sequence[Phase[Scope[AnyDataStore]]]:
        if scope.deleting:
            return [self._note_users, self._await_unused, self.drop_finalizer]
        return [self.hold_finalizer, self._note_users, self._check]

    async def _note_users(self, scope: Scope[AnyDataStore]) -> Wait | None:
        found = self._tenants.by(_USED_BY, scope.object.metadata.name)
        scope.object.status.used_by = sorted(str(key_of(each)) for each in found)
        return None

    async def _await_unused(self, scope: Scope[AnyDataStore]) -> Wait | None:
        users = scope.object.status.used_by
        if not users:
            return None
        text = f"in use by {', '.join(users)}: delete them, or set their spec.dataStore to another one"
        return Wait("InUse", text)

    async def _check(self, scope: Scope[AnyDataStore]) -> Wait | None:
        """Databases are spoken to by kine alone: whether they answer is seen in the Pods."""
        store = scope.object
        check_driver(store, self._can_run)
        credentials = await read_credentials(self.client, store)
        if store.spec.driver == "etcd":
            async with self._connect(access_of(store, credentials)) as etcd:
                await prepare_datastore(etcd, ours=is_ours(store), name=store.metadata.name)
        return None

    def expected(self, scope: Scope[AnyDataStore], error: Exception) -> Wait | None:
        if isinstance(error, DatastoreError):
            return Wait(error.reason, str(error), after=RETRY_SECONDS, warning=True)
        return None

    def next_look(self, scope: Scope[AnyDataStore], wait: Wait | None) -> Wait | None:
        if wait is None and not scope.deleting:
            wait = Wait("Watching", "the datastore is checked periodically", after=CHECK_SECONDS, quiet=True)
        return super().next_look(scope, wait)
