"""All of it together: which change brings which object back."""

from __future__ import annotations

from homeport.apiserver.registry import Registry
from homeport.sim.harvester.controller.instance import Instances
from homeport.sim.harvester.controller.launcher import Launchers
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.host.drain import Maintenance
from homeport.sim.harvester.host.eviction import Evictions
from homeport.sim.harvester.host.migration import JOB, Migrations
from homeport.sim.harvester.host.node import Nodes
from homeport.sim.harvester.kind import MIGRATION, NODE, POD, VMI, Json
from homeport.sim.harvester.loop import Loop
from homeport.sim.harvester.object import key_of, labels, status_of

FOLLOWED = (MIGRATION,)


class Hosting:
    """`install` once; `connect` when the mirror follows `FOLLOWED`, nodes, Pods and VMIs."""

    def __init__(self, core: Core, instances: Instances, launchers: Launchers) -> None:
        self._core = core
        self._evictions = Evictions(core)
        self._migrations = Migrations(core, launchers)
        self.node = Loop("node", Nodes(core, instances, Maintenance(core, self._evictions)).settle)
        self.migration = Loop("migration", self._migrations.settle)
        self.evacuation = Loop("evacuation", self._migrations.evacuate)

    @property
    def loops(self) -> dict[str, Loop]:
        return {each.name: each for each in (self.node, self.migration, self.evacuation)}

    def install(self, registry: Registry) -> None:
        self._evictions.install(registry)

    def connect(self) -> None:
        mirror = self._core.mirror
        mirror.on(NODE, lambda key, new, old: self.node.add(key))
        mirror.on(MIGRATION, self._migration_changed)
        mirror.on(VMI, self._instance_changed)
        mirror.on(POD, self._pod_changed)

    def meet_faults(self) -> None:
        for node in self._core.mirror.all(NODE):
            self.node.add(node["metadata"]["name"])

    def _migration_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        self.migration.add(key)
        found = new or old
        if found is not None:
            self._wake(self._migrations.instance_key(found))

    def _instance_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        self._wake(key)
        for each in (new, old):
            if each is not None and (node := status_of(each).get("nodeName")):
                self.node.add(node)

    def _wake(self, instance: str) -> None:
        self.evacuation.add(instance)
        vmi = self._core.mirror.get(VMI, instance)
        for migration in self._migrations.of(vmi) if vmi is not None else ():
            self.migration.add(str(key_of(migration)))

    def _pod_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        pod = new or old
        if pod is None:
            return
        if node := pod["spec"].get("nodeName"):
            self.node.add(node)
        if JOB in labels(pod):
            namespace = key.rpartition("/")[0]
            self._wake(f"{namespace}/{labels(pod).get('vm.kubevirt.io/name', '')}")
