"""ClusterClass: owns its templates, so that they move and go with it, and says whether it can be used."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.meta import wire
from homeport.capi import name
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import ensure_owner, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import NotFound
from homeport.core.clusterclass.status import EXTERNAL, Seen, external_patches, fill_in
from homeport.core.clusterclass.template import TemplateRef, templates
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

MANAGER = "homeport-clusterclass"


class ClassScope(Scope[ClusterClass]):
    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """The reconciler fills in the status itself; what is wrong is reported as an event, too."""
        return None


class ClassReconciler(CapiReconciler[ClusterClass, ClassScope]):
    controller_name = "clusterclass"
    kind = ClusterClass
    field_manager = MANAGER
    condition = name.Condition.VARIABLES_READY
    status_wakes = False
    waits_are_events = True

    def __init__(self, capi: Capi) -> None:
        super().__init__(capi.manager)
        self._externals = capi.externals

    def load(self, obj: ClusterClass) -> ClassScope | None:
        return None if obj.metadata.deletion_timestamp else ClassScope(obj)

    def phases(self, scope: ClassScope) -> Sequence[Phase[ClassScope]]:
        return [self._check_templates]

    async def _check_templates(self, scope: ClassScope) -> Wait | None:
        held, seen = scope.object, Seen()
        looked: set[tuple[str, str, str]] = set()
        for ref in templates(wire(held)):
            if (which := (ref.api_version, ref.kind, ref.name)) not in looked:
                looked.add(which)
                await self._hold_template(held, ref, seen)
        fill_in(held, seen, rfc3339(self.clock.now()))
        if seen.troubles:
            # The coming of the template, or of its kind, wakes us.
            return Wait(name.Reason.TEMPLATES_NOT_USABLE, "; ".join(seen.troubles))
        external = external_patches(held)
        return Wait(name.Reason.VARIABLE_DISCOVERY_FAILED, EXTERNAL.format(", ".join(external))) if external else None

    async def _hold_template(self, held: ClusterClass, ref: TemplateRef, seen: Seen) -> None:
        namespace, kind = held.metadata.namespace, ClusterClass.__resource__
        try:
            found = await self._externals.find(ref, namespace, watcher=self.controller, owner_kind=kind)
        except NotInstalled as error:
            seen.troubles.append(f"{ref.path}: {error}")
            return
        if found is None:
            seen.troubles.append(f"{ref.path}: {ref} does not exist in namespace {namespace}: create it")
            return
        template, served = found
        if not template.metadata.get("deletionTimestamp"):
            try:
                await ensure_owner(self.client, served.resource, template, owner_reference(held), self._write)
            except NotFound:
                seen.troubles.append(f"{ref.path}: {ref} was deleted: create it again")
        if ref.version != served.resource.version:
            seen.outdated.append((ref, served.resource.version))
