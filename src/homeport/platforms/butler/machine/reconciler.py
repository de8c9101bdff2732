"""MachineRequest: one VM on any provider, through the driver that machines of clusters have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest, ProviderConfig
from homeport.capi.component import Setup
from homeport.capi.object.ownership import controller_of
from homeport.capi.platform import MachineOrder
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.infra.error import Misconfigured, Missing, ProviderError, Taken
from homeport.platforms.butler.machine.order import SECRET, read_user_data, shape_of
from homeport.platforms.butler.machine.phase import (
    DELETED,
    has_run,
    phase_of,
    phase_of_error,
    put_machine,
)
from homeport.platforms.butler.machine.record import Records, strike
from homeport.platforms.butler.name import NODE_FINALIZER, PROVIDER_FINALIZER_PREFIX, VM_GONE_ANNOTATION
from homeport.platforms.butler.normal.machine import CONTROL_PLANE, MachineModel, normal_machine_request
from homeport.platforms.butler.provider.access import Accesses, check_access, find_config, probed
from homeport.platforms.butler.provider.attempt import Attempts
from homeport.platforms.butler.provider.site import SiteOf, read_site
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.scope import ProviderScope
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_SUFFIX = "-finalizer"
_RECORDED = "homeport.dev/"  # what drivers note on an object
_OBSERVE_SECONDS = 300.0  # whose VM changes is woken by the provider's watch


MachineScope = ProviderScope[MachineRequest]


class MachineRequestReconciler(ButlerReconciler[MachineRequest, MachineScope]):
    controller_name = "butler-machinerequest"
    kind = MachineRequest
    workers = 32

    def __init__(self, setup: Setup, accesses: Accesses) -> None:
        super().__init__(setup.manager)
        self._accesses = accesses
        self._records = Records(setup)
        self._configs = setup.manager.informers.get(ProviderConfig).cache
        self._bootstraps = setup.manager.informers.get(ClusterBootstrap).cache
        self._attempts = Attempts(setup.manager.clock)
        self.controller.map(ProviderConfig, self._users_of, predicate=probed)
        self.controller.map(ClusterBootstrap, self._owned_by, predicate=lambda old, new: new is None)
        self.controller.map(metadata_only(SECRET), self._readers_of)

    def predicate(self, old: MachineRequest | None, new: MachineRequest | None) -> bool:
        return old is None or new is None or _written(old) != _written(new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._attempts.forget(key)

    def load(self, obj: MachineRequest) -> MachineScope:
        return MachineScope(obj)

    def pause(self, scope: MachineScope) -> bool:
        return super().pause(scope) or (scope.object.spec.paused and not scope.deleting)

    async def reconcile_paused(self, scope: MachineScope) -> Wait | None:
        self._accesses.stop_watching(scope.object.metadata.uid)
        return None

    def phases(self, scope: MachineScope) -> Sequence[Phase[MachineScope]]:
        return [self._guarded, self._drop_orphaned, self.drop_finalizer] if scope.deleting else [self._guarded]

    # -- one step ----------------------------------------------------------------------------------------------

    async def _guarded(self, scope: MachineScope) -> Wait | None:
        work = self._release(scope) if scope.deleting else self._converge(scope)
        return await self._attempts.report(
            scope.object, work, shown=_shown, failed=lambda error: self._failed(scope, error)
        )

    async def _converge(self, scope: MachineScope) -> Wait | None:
        model = self._model(scope)
        found = await self._site(scope, model)
        data = b"" if has_run(scope.object.status) else await read_user_data(self.client, scope.key.namespace, model)
        # Not earlier: a request that holds nothing at the provider can be deleted without asking the provider.
        await self._records.enter(scope.object, model.name, scope.config)
        await self._hold(scope, found.support.type)
        order, machines = self._order(scope, model, data), self._accesses.of(found.support).machines
        try:
            outcome = await machines.converge(found.site, order)
        finally:
            scope.object.status.driver = dict(order.kept)
        put_machine(scope.object.status, outcome.machine, outcome.wait)
        scope.object.status.phase = phase_of(scope.object.status, outcome.wait, deleting=False)
        scope.timer = Wait("ObserveAgain", after=_OBSERVE_SECONDS, quiet=True)
        return outcome.wait

    async def _release(self, scope: MachineScope) -> Wait | None:
        """None: nothing at the provider belongs to the request."""
        if self._finalizers(scope)[0]:
            model = self._model(scope)
            found = await self._site(scope, model)
            order, machines = self._order(scope, model, b""), self._accesses.of(found.support).machines
            try:
                outcome = await machines.release(found.site, order)
            finally:
                scope.object.status.driver = dict(order.kept)
            if outcome.wait is not None:
                scope.object.status.phase = phase_of(scope.object.status, outcome.wait, deleting=True)
                return outcome.wait
        scope.object.status.phase = DELETED
        return None

    def _failed(self, scope: MachineScope, error: ProviderError) -> Wait:
        status = scope.object.status
        status.phase = phase_of_error(status, error, deleting=scope.deleting)
        more = f" (ProviderConfig {scope.config})" if scope.config else ""
        if scope.deleting and isinstance(error, Misconfigured | Missing):
            held = ", ".join(self._finalizers(scope)[0])
            more += f"; if the VM no longer exists, remove the finalizer {held}"
        if isinstance(error, Taken):
            more += "; a VM is called as spec.machineName says: create a MachineRequest with another one"
        return self._attempts.failed(scope.key, status, error, more)

    # -- what it is made of ------------------------------------------------------------------------------------

    def _model(self, scope: MachineScope) -> MachineModel:
        normal = normal_machine_request(scope.object)
        if normal.model is None:
            raise Misconfigured(normal.text)
        return normal.model

    async def _site(self, scope: MachineScope, model: MachineModel) -> SiteOf:
        config = find_config(model.provider, scope.key.namespace, self._configs, "spec.providerRef")
        scope.config = str(key_of(config))
        if not scope.deleting:
            self._accesses.check_namespace(config, scope.key.namespace, "spec.providerRef")
        site = await read_site(self.client, self._accesses.supports, config)
        self._check_type(scope, site.support.type)
        scope.object.status.provider = site.support.type
        if not scope.deleting:
            check_access(site.model, scope.key.namespace, scope.config, "spec.providerRef")
        return site

    def _check_type(self, scope: MachineScope, type_: str) -> None:
        """Another provider does not have the VM: that it finds none there is no proof that the VM is gone."""
        held = [each.removeprefix(PROVIDER_FINALIZER_PREFIX) for each in self._finalizers(scope)[0]]
        former = held[0].removesuffix(_SUFFIX) if held else type_
        if former != type_:
            raise Misconfigured(
                f"spec.providerRef: the provider is {type_}, and the VM of this request is on {former}: name a "
                f"ProviderConfig of type {former} that leads to the VM"
            )

    def _order(self, scope: MachineScope, model: MachineModel, user_data: bytes) -> MachineOrder:
        obj, key = scope.object, scope.key

        async def record(annotations: Mapping[str, str]) -> None:
            body = {"metadata": {"annotations": dict(annotations), "uid": obj.metadata.uid}}
            scope.update_metadata(await self.client.patch(MachineRequest, key, MergePatch(body), self._write))

        return MachineOrder(
            uid=obj.metadata.uid,
            namespace=key.namespace,
            object_name=key.name,
            name=model.name,
            shape=shape_of(model),
            user_data=user_data,
            control_plane=model.role == CONTROL_PLANE,
            provider_id=obj.status.provider_id,
            has_run=has_run(obj.status),
            deleting=scope.deleting,
            annotations=obj.metadata.annotations,
            kept=obj.status.driver,
            record=record,
            wake=self._waker(key),
        )

    def _waker(self, key: Key) -> Callable[[], None]:
        return lambda: self.controller.queue.add(key)

    # -- finalizers: each provider has its own ----------------------------------------------------------------

    def _finalizers(self, scope: MachineScope) -> tuple[list[str], list[str]]:
        found = scope.object.metadata.finalizers
        ours = [each for each in found if each.startswith(PROVIDER_FINALIZER_PREFIX) and each.endswith(_SUFFIX)]
        return ours, [each for each in found if each not in ours]

    async def _hold(self, scope: MachineScope, provider: str) -> None:
        ours, others = self._finalizers(scope)
        if not ours:
            await self._write_finalizers(scope, [*others, f"{PROVIDER_FINALIZER_PREFIX}{provider}{_SUFFIX}"], {})

    async def drop_finalizer(self, scope: MachineScope) -> Wait | None:
        """Who stays for the sake of other finalizers learns with the same write that the VM is gone."""
        ours, others = self._finalizers(scope)
        if ours:
            await strike(self.client, scope.key.namespace, scope.object.metadata.uid)
            try:
                await self._write_finalizers(scope, others, {VM_GONE_ANNOTATION: "true"} if others else {})
            except NotFound:
                others = []
            scope.released = not others
        return None

    async def _drop_orphaned(self, scope: MachineScope) -> Wait | None:
        """A phase: a ClusterBootstrap that is not here any more does nothing for the Node of this machine."""
        found = scope.object.metadata.finalizers
        if NODE_FINALIZER in found and self._bootstrap(scope.object) is None:
            left = [each for each in found if each != NODE_FINALIZER]
            try:
                await self._write_finalizers(scope, left, {})
            except NotFound:
                left = []
            scope.released = not left
        return None

    def _bootstrap(self, request: MachineRequest) -> ClusterBootstrap | None:
        owner = controller_of(request)
        found = None if owner is None else self._bootstraps.get(Key(request.metadata.namespace, owner["name"]))
        return found if found is not None and owner is not None and found.metadata.uid == owner["uid"] else None

    # -- whom a change concerns --------------------------------------------------------------------------------

    def _users_of(self, config: ProviderConfig) -> Iterable[Key]:
        """By name alone: which of several of that name is meant may just have changed."""
        for each in self.objects:
            refs = (each.spec.provider_ref, each.spec.provider_config_ref)
            if config.metadata.name in {ref.name for ref in refs if ref is not None}:
                yield key_of(each)

    def _owned_by(self, bootstrap: ClusterBootstrap) -> Iterable[Key]:
        for each in self.objects:
            owner = controller_of(each)
            if owner is not None and owner["uid"] == bootstrap.metadata.uid:
                yield key_of(each)

    def _readers_of(self, secret: Any) -> Iterable[Key]:
        key = key_of(secret)
        for each in self.objects:
            ref = each.spec.user_data_secret_ref
            if ref is not None and Key(ref.namespace or each.metadata.namespace, ref.name) == key:
                yield key_of(each)


def _written(request: MachineRequest) -> tuple[Any, ...]:
    """Not what we write: status, finalizers and the notes of drivers."""
    meta = request.metadata
    annotations = {name: value for name, value in meta.annotations.items() if _RECORDED not in name}
    return request.spec, meta.deletion_timestamp, annotations, meta.uid


def _shown(request: MachineRequest) -> tuple[Any, ...]:
    status = request.status
    return status.phase, status.provider_id, list(status.ip_addresses), status.failure_message
