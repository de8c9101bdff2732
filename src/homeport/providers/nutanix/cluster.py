"""What the machines of a cluster need on Prism Central: its category, and the way back from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.infra.error import ProviderError, Taken
from homeport.infra.protocol import Check, ClusterDriver, FailureDomain, Owned
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.plan import CLUSTER_CATEGORY, CLUSTER_MARK, MARK
from homeport.providers.nutanix.preflight import Preflight, Scope
from homeport.providers.nutanix.prism.record import Category, Vm
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

CATEGORY = "ClusterCategoryCreated"
_NEW_SECONDS = 300.0  # for so long a category that we created is known to be without VMs of others


class NutanixClusterDriver(ClusterDriver[NutanixCluster, PrismSession]):
    def __init__(self, preflight: Preflight) -> None:
        self._preflight = preflight
        # NutanixClusters whose category did not exist, by UID: the one they got, and when.
        self._begun: dict[str, tuple[str, float]] = {}

    async def preflight(self, scope: Scope) -> Sequence[Check]:
        return await self._preflight.run(scope)

    # -- failure domains ---------------------------------------------------------------------------------------

    async def failure_domains(self, scope: Scope) -> Sequence[FailureDomain]:
        """Those that could be resolved: machines are never sent to one that can't take them."""
        found = []
        for domain in self._preflight.domains(scope):
            if all(check.ok for check in await self._preflight.check_domain(scope, domain)):
                cluster = domain.cluster
                attributes = {"cluster": str(cluster.name or cluster.uuid)} if cluster else {}
                found.append(FailureDomain(domain.name, domain.control_plane, attributes))
        return found

    # -- what there is -----------------------------------------------------------------------------------------

    async def converge(self, scope: Scope) -> Wait | None:
        try:
            await self._category(scope, create=True)
        except ProviderError as error:
            scope.report(CATEGORY, False, "ClusterCategoryCreationFailed", error.message)
            raise
        scope.report(CATEGORY, True, "Succeeded", "")
        return None

    async def _category(self, scope: Scope, *, create: bool) -> Category | None:
        prism, lookup = scope.session.prism, scope.session.lookup
        found = await lookup.find_category(CLUSTER_CATEGORY, scope.name)
        if found is None and create:
            description = f"Machines of Kubernetes cluster {scope.name}, managed by Homeport"
            found = await prism.create_category(CLUSTER_CATEGORY, scope.name, description)
            lookup.know_category(found)
            if found.is_new:
                self._begun[scope.infra.metadata.uid] = found.id, asyncio.get_running_loop().time()
        return found

    # -- the way back ------------------------------------------------------------------------------------------

    async def release(self, scope: Scope) -> Wait | None:
        """The category goes last. Clusters of other planes and namespaces may have the same name and so the same
        category: it stays while anything of theirs carries it, and never keeps this cluster from being deleted."""
        self._begun.pop(scope.infra.metadata.uid, None)
        # Another plane may have deleted and created it since it was read: the cluster was there in between.
        scope.session.lookup.forget_category(CLUSTER_CATEGORY, scope.name)
        category = await self._category(scope, create=False)
        if category is None:
            return None
        try:
            await scope.session.prism.delete_category(category)
        except Taken:
            return await self._await_own(scope, category)
        scope.session.lookup.forget_category(category.key, category.value)
        return None

    async def _await_own(self, scope: Scope, category: Category) -> Wait | None:
        mine = [each for each in await self.list_owned(scope) if each.cluster_uid == scope.infra.metadata.uid]
        named = f"{category.key}:{category.value}"
        if not mine:
            log.info("the category stays: something of others carries it", category=named, cluster=scope.name)
            return None
        shown = ", ".join(f"{each.name} ({each.id})" for each in mine[:3])
        scope.report(CATEGORY, False, "DeletionFailed", f"{named} is still in use")
        text = f"category {named} is still on {len(mine)} VMs of this cluster ({shown}); waiting until they are gone"
        return Wait("CategoryInUse", text, after=15.0, warning=True)

    async def list_owned(self, scope: Scope) -> Sequence[Owned]:
        return await self._owned(scope, scope.session.inventory.current)

    async def list_recent(self, scope: Scope) -> Sequence[Owned]:
        return await self._owned(scope, scope.session.inventory.vms)

    async def list_earlier(self, scope: Scope) -> Sequence[Owned]:
        """No VM can have been in a category that we created ourselves. This is known once and for a while: whoever
        asks again may have created a VM meanwhile, and so may another replica whose objects a restore took away."""
        begun, at = self._begun.pop(scope.infra.metadata.uid, ("", 0.0))
        if begun and asyncio.get_running_loop().time() - at < _NEW_SECONDS:
            category = await self._category(scope, create=False)
            if category is not None and category.id == begun:
                return []
        return await self.list_owned(scope)

    async def _owned(self, scope: Scope, read: Callable[[], Awaitable[Sequence[Vm]]]) -> Sequence[Owned]:
        category = await self._category(scope, create=False)
        if category is None:
            return []
        return [
            Owned(each.id, each.name, each.mark(MARK), each.mark(CLUSTER_MARK), each.addresses, each.power)
            for each in await read()
            if category.id in each.category_ids
        ]

    async def remove(self, scope: Scope, owned: Owned) -> None:
        prism = scope.session.prism
        vm = await prism.vm(owned.id)
        if vm is None or (vm.mark(CLUSTER_MARK), vm.mark(MARK)) != (owned.cluster_uid, owned.uid):
            return
        for group in vm.volume_group_ids:
            await prism.detach(vm, group)
        if not vm.volume_group_ids:  # otherwise in the next round
            await prism.delete_vm(vm)
