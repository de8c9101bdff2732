"""The reconciler of every InfraMachine kind: the contract of Cluster API on one side, a MachineDriver on the other."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineAddress
from homeport.api.meta import Object
from homeport.capi import name as names
from homeport.capi.cloud import Sources
from homeport.capi.family import primary_family
from homeport.capi.unreadable import await_readable
from homeport.client.protocol import Key, MergePatch
from homeport.infra.cluster.vip import with_vip
from homeport.infra.error import ProviderError
from homeport.infra.machine.address import Claims, takes_addresses
from homeport.infra.machine.belonging import Owners, machine_name
from homeport.infra.machine.bootstrapdata import read_user_data
from homeport.infra.machine.departure import Departures
from homeport.infra.machine.driver import ATTEMPT
from homeport.infra.machine.location import LOCATION, Location, await_location, is_recorded
from homeport.infra.orphan.record import machine_id
from homeport.infra.orphan.sweep import orphans_of
from homeport.infra.protocol import ClusterScope, Instance, MachineScope, Provider, Session, StaticAddress
from homeport.infra.reconciler import ProviderReconciler, ProviderScope, edited, has_run, is_provisioned
from homeport.runtime.manager import Manager, Solo
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)
T = TypeVar("T")

_MISSING_SECONDS = 30.0
_GONE_SECONDS = 60.0


class MachineReconciler(ProviderReconciler[M], Generic[C, M, S]):
    workers = 32

    def __init__(self, manager: Manager, provider: Provider[C, M, S], departures: Departures) -> None:
        kind, finalizers = provider.machine_kind, (provider.machine_finalizer, provider.former_finalizers)
        super().__init__(manager, provider.name, "machine", kind, *finalizers)
        self._provider = provider
        self._departures = departures
        self._owners = Owners(manager, provider.cluster_kind)
        self._informers = manager.informers
        self._claims = (
            Claims(manager, provider.name, provider.machine_kind) if takes_addresses(provider.machine_kind) else None
        )
        self._missed: dict[Key, float] = {}  # since when a machine that ran is not found
        # The objects (by UID) whose first finalizer was ours, and written by this process: nobody asks a vendor for
        # anything before that. Where others may have taken over in between, nothing is sure.
        self._never_asked: dict[Key, str] = {}
        self._alone = isinstance(manager.mode, Solo)

    # -- one loop ----------------------------------------------------------------------------------------------

    def predicate(self, old: M | None, new: M | None) -> bool:
        """Not what a driver records: it would cut short the wait for a retry."""
        if old is None or new is None:
            return True
        recorded = (f"{self._provider.name}.homeport.dev/", ATTEMPT, LOCATION)
        return edited(_without(recorded, old), _without(recorded, new))

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._missed.pop(key, None)
        self._never_asked.pop(key, None)

    async def gone(self, key: Key) -> Wait | None:
        if self._claims is not None:
            await self._claims.release_left(key)
        self._departures.forget(key)
        return None

    def load(self, obj: M) -> ProviderScope[M]:
        machine = self._owners.machine(obj)
        return ProviderScope(obj, self._owners.cluster(obj, machine), machine)

    async def reconcile_paused(self, scope: ProviderScope[M]) -> Wait | None:
        wait = await self._settled(scope, scope.machine, scope.cluster)
        if wait is None:
            self._provider.machine_driver.stop_watching(scope.object.metadata.uid)
        return wait

    def phases(self, scope: ProviderScope[M]) -> Sequence[Phase[ProviderScope[M]]]:
        return [self._guarded]

    async def _guarded(self, scope: ProviderScope[M]) -> Wait | None:
        try:
            work = self._release if scope.deleting else self._normal
            wait = await work(scope, scope.machine, scope.cluster)
        except ProviderError as error:
            self._report_reachable(scope, error)
            wait = self._failed(scope, error)
        else:
            self._report_reachable(scope)
            self._went_well(scope.key)
        if wait is not None and (scope.deleting or not is_provisioned(scope.object)):
            self._condition(scope, self._provider.conditions.instance, False, wait.reason, wait.message)
        return wait

    # -- growing -----------------------------------------------------------------------------------------------

    async def _normal(self, scope: ProviderScope[M], machine: Machine | None, cluster: Cluster | None) -> Wait | None:
        if machine is None or cluster is None:
            scope.brief = True
            return Wait("WaitingForOwner", "no Machine owns this object yet", quiet=True)
        infra_cluster = self._owners.infra_cluster(cluster)
        if infra_cluster is None or not cluster.status.initialization.infrastructure_provisioned:
            return Wait("ClusterInfrastructureNotReady", f"Cluster {cluster.metadata.name} has no infrastructure yet")
        if not machine.spec.bootstrap.data_secret_name and not is_provisioned(scope.object):
            return self._no_bootstrap_data(scope, machine, cluster)
        # Not earlier: an object that holds nothing at the vendor can be deleted without asking the vendor, which may
        # be impossible for ever.
        # One that names a machine was moved or adopted.
        blank = not scope.object.metadata.finalizers and not machine_id(scope.object)
        await self.hold_finalizer(scope)
        if blank and self._alone:
            self._never_asked[scope.key] = scope.object.metadata.uid
        # Not earlier: machines that can't be made yet must not take the addresses of those that can.
        given: Wait | tuple[StaticAddress, ...] = ()
        if self._claims is not None and not has_run(scope.object, machine):
            given = await self._claims.hold(scope.object, cluster)
        if isinstance(given, Wait):
            return given
        driver_scope = await self._connected(scope, machine, cluster, infra_cluster)
        driver_scope.addresses = given
        instance = await self._asked(scope, driver_scope, self._provider.machine_driver.observe(driver_scope))
        if instance is None and driver_scope.has_run:
            return await_location(scope.object, self._provider.location(driver_scope.session)) or self._vanished(scope)
        self._missed.pop(scope.key, None)
        if instance is None:
            older = await self._initialized_before(driver_scope, cluster, infra_cluster)
            if older is not None:
                return older
            await self._prepare(driver_scope, machine, cluster, infra_cluster)
            await self._block_move(scope)
        self._fence()
        self._never_asked.pop(scope.key, None)
        wait = await self._asked(scope, driver_scope, self._provider.machine_driver.converge(driver_scope, instance))
        if instance is not None:
            await self._publish(scope, driver_scope, instance)
        if wait is not None:
            return wait
        if instance is None or not (instance.serving or is_provisioned(scope.object)):
            return Wait("WaitingForInstance", "the machine is not up yet", after=1.0)
        # No event reports that somebody removes it or takes its address, so look again.
        self._wake(scope.key, after=self._provider.observe_seconds)
        return None

    async def _asked(self, scope: ProviderScope[M], driver_scope: MachineScope[C, M, S], asked: Awaitable[T]) -> T:
        place = self._provider.location(driver_scope.session).name or self._provider.name
        return await self._answer(scope, asked, place, self._provider.conditions.instance)

    async def _prepare(
        self, driver_scope: MachineScope[C, M, S], machine: Machine, cluster: Cluster, infra_cluster: C
    ) -> None:
        """What a machine needs that is created now."""
        driver_scope.user_data, driver_scope.format = await read_user_data(self.client, machine)
        interface = self._provider.vip_interface(infra_cluster) if driver_scope.control_plane else ""
        if interface:
            driver_scope.user_data = with_vip(driver_scope.user_data, machine, cluster, interface)

    async def _initialized_before(
        self, driver_scope: MachineScope[C, M, S], cluster: Cluster, infra_cluster: C
    ) -> Wait | None:
        """A first control plane beside machines of the same cluster would begin a second cluster at the same address:
        this state is older than the cluster."""
        if not driver_scope.control_plane or cluster.status.initialization.control_plane_initialized:
            return None
        scope = ClusterScope(cluster, infra_cluster, driver_scope.session, provisioned=True)
        owned = await self._provider.cluster_driver.list_earlier(scope)
        if not owned:
            return None
        known = frozenset(each.metadata.uid for each in self.objects)
        ids = frozenset(filter(None, (machine_id(each) for each in self.objects)))
        orphans = orphans_of(owned, infra_cluster.metadata.uid, known, ids)
        if not orphans:
            return None
        shown = ", ".join(f"{each.name} ({each.id})" for each in orphans[:3])
        name, namespace = cluster.metadata.name, cluster.metadata.namespace
        text = (
            f"machines of this cluster exist without an object: {shown}. The control plane is not initialized a "
            f"second time: run 'homeport orphans list {name} -n {namespace}', or restore a newer backup"
        )
        return Wait("OrphanedMachines", text, after=_GONE_SECONDS, warning=True)

    def _no_bootstrap_data(self, scope: ProviderScope[M], machine: Machine, cluster: Cluster) -> Wait:
        plane = names.CONTROL_PLANE_LABEL in machine.metadata.labels
        if not plane and not cluster.status.initialization.control_plane_initialized:
            text = f"the control plane of Cluster {cluster.metadata.name} must come up first"
            return Wait("ControlplaneNotInitialized", text)
        scope.brief = True
        return Wait("BootstrapDataNotReady", f"Machine {machine.metadata.name} has no bootstrap data yet")

    def _vanished(self, scope: ProviderScope[M]) -> Wait:
        """Never recreated silently: the owner of the Machine decides about a replacement.

        Vendors answer from copies that lag behind, at times: it takes a second look to believe it.
        """
        now = self.clock.monotonic()
        if now - self._missed.setdefault(scope.key, now) < _MISSING_SECONDS:
            return Wait("InstanceNotFound", "the machine was not found: checking again to confirm", _MISSING_SECONDS)
        status: Any = getattr(scope.object, "status", None)
        spec: Any = getattr(scope.object, "spec", None)
        message = f"machine {spec.provider_id} no longer exists at the infrastructure: delete the Machine to replace it"
        if hasattr(status, "failure_reason"):
            status.failure_reason, status.failure_message = "InstanceGone", message
        self._condition(scope, self._provider.conditions.instance, False, "InstanceGone", message)
        return Wait("InstanceGone", message, after=_GONE_SECONDS, warning=True)

    async def _publish(self, scope: ProviderScope[M], driver_scope: MachineScope[C, M, S], instance: Instance) -> None:
        await self._hold_provider_id(scope, driver_scope, instance)
        status: Any = getattr(scope.object, "status", None)
        self._publish_addresses(scope, status, instance)
        domain = instance.failure_domain or driver_scope.failure_domain
        if domain and hasattr(status, "failure_domain"):
            status.failure_domain = domain
        if instance.serving and not is_provisioned(scope.object):
            status.ready = True
            status.initialization.provisioned = True
        if is_provisioned(scope.object):
            self._condition(scope, self._provider.conditions.instance, True, "Provisioned")
        if hasattr(status, "failure_reason"):
            status.failure_reason = status.failure_message = None

    def _publish_addresses(self, scope: ProviderScope[M], status: Any, instance: Instance) -> None:
        """Addresses that are not reported for a while are still the machine's; others in their place are news."""
        kind = self._provider.conditions.addresses
        if not instance.addresses:
            text = f"machine {instance.name} ({instance.id}) reports no address"
            known = ", ".join(each.address for each in status.addresses)
            text += f"; the last known are {known}" if known else ""
            if instance.power == "on":
                self._condition(scope, kind, False, "WaitingForAddress", text)
            return
        before = [each.address for each in status.addresses]
        status.addresses = [MachineAddress(type=each.type, address=each.address) for each in instance.addresses]
        after = [each.address for each in status.addresses]
        self._condition(scope, kind, True, "Succeeded")
        if not set(before) <= set(after):  # additional addresses, for example of another family, are fine
            text = f"its addresses were {', '.join(before)} and are now {', '.join(after)}"
            self.recorder.record(scope.object, "AddressChanged", text, warning=True)

    async def _hold_provider_id(
        self, scope: ProviderScope[M], driver_scope: MachineScope[C, M, S], instance: Instance
    ) -> None:
        """And where the machine is."""
        spec: Any = getattr(scope.object, "spec", None)
        location = self._provider.location(driver_scope.session)
        if spec.provider_id == instance.provider_id and is_recorded(scope.object, location):
            return
        annotations: dict[str, str | None] = {LOCATION: str(location)} if location.name else {}
        if names.BLOCK_MOVE in scope.object.metadata.annotations:
            annotations[names.BLOCK_MOVE] = None
        meta: dict[str, Any] = {"uid": scope.object.metadata.uid, "annotations": annotations}
        body = {"spec": {"providerID": instance.provider_id}, "metadata": meta}
        written = await self.client.patch(self._provider.machine_kind, scope.key, MergePatch(body), self._write)
        spec.provider_id = instance.provider_id
        scope.update_metadata(written)
        self.pause(scope)  # of the generation that this write made

    # -- being moved -------------------------------------------------------------------------------------------
    # The status does not go along to another plane, and with it goes what is under way. From its first finalizer on
    # until it says which machine is its own, an object asks clusterctl to wait; when it is paused, it gets there.

    def marks(self, obj: M) -> dict[str, str]:
        spec: Any = getattr(obj, "spec", None)
        return {} if spec.provider_id or is_provisioned(obj) else {names.BLOCK_MOVE: ""}

    async def _block_move(self, scope: ProviderScope[M]) -> None:
        """Once more for one that has rested in between."""
        marks = self.marks(scope.object)
        if marks and names.BLOCK_MOVE not in scope.object.metadata.annotations:
            await self._annotate(scope, marks)

    async def _settled(self, scope: ProviderScope[M], machine: Machine | None, cluster: Cluster | None) -> Wait | None:
        """Of one that is paused: what is under way is followed to its end, and nothing else is begun."""
        if names.BLOCK_MOVE not in scope.object.metadata.annotations:
            return None
        try:
            wait = await self._settle(scope, machine, cluster)
        except ProviderError as error:
            return self._failed(scope, error)
        await self._store(scope)
        return wait

    async def _settle(self, scope: ProviderScope[M], machine: Machine | None, cluster: Cluster | None) -> Wait | None:
        infra_cluster = self._owners.infra_cluster(cluster)
        begun = not self._is_never_asked(scope)
        if begun and machine is not None and cluster is not None and infra_cluster is not None:
            driver_scope = await self._connected(scope, machine, cluster, infra_cluster)
            wait = await self._provider.machine_driver.quiesce(driver_scope)
            if wait is not None:
                return wait
            instance = await self._provider.machine_driver.observe(driver_scope)
            if instance is not None:
                await self._hold_provider_id(scope, driver_scope, instance)
        if names.BLOCK_MOVE in scope.object.metadata.annotations:
            await self._annotate(scope, {names.BLOCK_MOVE: None})
        return None

    async def _annotate(self, scope: ProviderScope[M], annotations: Mapping[str, str] | Mapping[str, None]) -> None:
        meta = scope.object.metadata
        body = {"metadata": {"annotations": dict(annotations), "uid": meta.uid}}
        scope.update_metadata(
            await self.client.patch(self._provider.machine_kind, scope.key, MergePatch(body), self._write)
        )

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def _release(self, scope: ProviderScope[M], machine: Machine | None, cluster: Cluster | None) -> Wait | None:
        if not self.holds_finalizer(scope):
            return None
        if self._is_never_asked(scope):  # then its credentials need not work, or exist
            return await self._let_go(scope)
        infra_cluster = self._owners.infra_cluster(cluster)
        if infra_cluster is None:
            wait = self._await_infra_cluster(scope)
            if wait is not None:
                return wait
        driver_scope = await self._connected(scope, machine or Machine(), cluster, infra_cluster)
        instance = await self._provider.machine_driver.observe(driver_scope)
        if instance is None:
            elsewhere = await_location(scope.object, self._provider.location(driver_scope.session))
            if elsewhere is not None:
                return elsewhere
        else:
            await self._hold_location(scope, self._provider.location(driver_scope.session))
        self._fence()
        wait = await self._provider.machine_driver.release(driver_scope, instance)
        return wait if wait is not None else await self._let_go(scope)

    async def _hold_location(self, scope: ProviderScope[M], location: Location) -> None:
        """Before the machine goes: that it is not found later proves something only where it was found last."""
        if not is_recorded(scope.object, location):
            await self._annotate(scope, {LOCATION: str(location)})

    async def _let_go(self, scope: ProviderScope[M]) -> Wait | None:
        """Nothing at the vendor belongs to the object."""
        if self._claims is not None:
            await self._claims.release(scope.object)
        self._departures.release(scope.object)
        return await self.drop_finalizer(scope)

    def _is_never_asked(self, scope: ProviderScope[M]) -> bool:
        return self._never_asked.get(scope.key) == scope.object.metadata.uid

    def _await_infra_cluster(self, scope: ProviderScope[M]) -> Wait | None:
        """None: the InfraCluster is gone, and the machine names the credentials for its deletion itself."""
        kind = self._provider.cluster_kind.__resource__
        sources = self._provider.machine_sources
        # A machine that names none may be anywhere: where nothing is found, nothing is proven to be gone.
        if sources is None or sources(scope.object) == Sources():
            return Wait(
                "WaitingForInfrastructureCluster",
                f"the {kind.kind} of this machine no longer exists: create it again, or delete the machine manually "
                f"and then remove the finalizer {self._provider.machine_finalizer}",
            )
        # One that can't be read may be paused.
        return await_readable(self._informers, scope.key.namespace, Cluster.__resource__, kind)

    # -- the object itself -------------------------------------------------------------------------------------

    async def _connected(
        self, scope: ProviderScope[M], machine: Machine, cluster: Cluster | None, infra_cluster: C | None
    ) -> MachineScope[C, M, S]:
        connecting = self._provider.connector.connect_machine(scope.object, infra_cluster)
        session = await self._session(scope, connecting, self._sources(scope.object, infra_cluster))
        return self._scope(scope, machine, cluster or Cluster(), infra_cluster, session)

    def _sources(self, infra: M, infra_cluster: C | None) -> Sources:
        """A machine has credentials of its own, or those of its InfraCluster."""
        own = Sources() if self._provider.machine_sources is None else self._provider.machine_sources(infra)
        if own != Sources() or infra_cluster is None:
            return own
        return self._provider.connector.sources(infra_cluster)

    def _scope(
        self, scope: ProviderScope[M], machine: Machine, cluster: Cluster, infra_cluster: C | None, session: S
    ) -> MachineScope[C, M, S]:
        async def record(annotations: Mapping[str, str]) -> None:
            await self._annotate(scope, annotations)

        key = scope.key
        return MachineScope(
            infra=scope.object,
            session=session,
            name=machine.metadata.name or machine_name(scope.object),
            infra_cluster=infra_cluster,
            cluster=cluster.metadata.name,
            endpoint=cluster.spec.control_plane_endpoint.host,
            family=primary_family(cluster),
            version=machine.spec.version,
            control_plane=names.CONTROL_PLANE_LABEL in machine.metadata.labels,
            has_run=has_run(scope.object, machine),
            failure_domain=machine.spec.failure_domain or "",
            never_asked=self._is_never_asked(scope),
            record=record,
            wake=lambda: self._wake(key),
            report=lambda kind, ok, reason, message: self._condition(scope, kind, ok, reason, message),
        )


def _without(recorded: tuple[str, ...], obj: M) -> M:
    """Without the annotations that start with `recorded`."""
    annotations = {name: value for name, value in obj.metadata.annotations.items() if not name.startswith(recorded)}
    replace = msgspec.structs.replace
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))
