"""All of it together: which change brings which object back."""

from __future__ import annotations

from homeport.api.meta import Resource
from homeport.apiserver.verb.admission import Admission
from homeport.sim.harvester.balancer.admission import BalancerAdmission
from homeport.sim.harvester.balancer.announce import Announcer
from homeport.sim.harvester.balancer.loadbalancer import LoadBalancers
from homeport.sim.harvester.balancer.pool import Pools
from homeport.sim.harvester.balancer.service import POOLS, SERVICE_NAME, Services
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CONFIG_MAP, ENDPOINT_SLICE, IP_POOL, LOAD_BALANCER, POD, SERVICE, VMI, Json
from homeport.sim.harvester.loop import Loop
from homeport.sim.harvester.object import key_of, labels
from homeport.sim.network import Network

FOLLOWED = (SERVICE, ENDPOINT_SLICE, CONFIG_MAP, LOAD_BALANCER, IP_POOL)


class Balancing:
    """`install` before the first object comes; `connect` when the mirror follows `FOLLOWED`, VMIs and Pods."""

    def __init__(self, core: Core, network: Network) -> None:
        self._core = core
        self._announcer = Announcer(network)
        pools = Pools(core)
        self._admission = BalancerAdmission(core.mirror)
        self.pool = Loop("ippool", pools.settle)
        self.service = Loop("service", Services(core, self._announcer).settle)
        self.balancer = Loop("loadbalancer", LoadBalancers(core, pools, self._announcer).settle)

    @property
    def loops(self) -> dict[str, Loop]:
        return {each.name: each for each in (self.pool, self.service, self.balancer)}

    def install(self, admission: Admission) -> None:
        self._admission.install(admission)

    def connect(self) -> None:
        mirror = self._core.mirror
        mirror.on(IP_POOL, lambda key, new, old: self.pool.add(key))
        mirror.on(LOAD_BALANCER, lambda key, new, old: self.balancer.add(key))
        mirror.on(SERVICE, self._service_changed)
        mirror.on(ENDPOINT_SLICE, self._endpoints_changed)
        mirror.on(CONFIG_MAP, self._config_changed)
        mirror.on(VMI, self._instance_changed)
        mirror.on(POD, self._pod_changed)

    def _service_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        del new, old
        self.service.add(key)
        self.balancer.add(key)

    def _endpoints_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        found = new or old or {}
        namespace, _, _ = key.rpartition("/")
        if name := labels(found).get(SERVICE_NAME):
            self.service.add(f"{namespace}/{name}")

    def _config_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        del new, old
        if key == POOLS:
            for service in self._core.mirror.all(SERVICE):
                self.service.add(str(key_of(service)))

    def _instance_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        del new, old
        self._bring(LOAD_BALANCER, key, self.balancer)

    def _pod_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        del new, old
        self._bring(SERVICE, key, self.service)

    def _bring(self, kind: Resource, key: str, loop: Loop) -> None:
        """Those of the namespace: one of them may lead to what has changed."""
        namespace = key.rpartition("/")[0]
        for each in self._core.mirror.all(kind):
            if each["metadata"]["namespace"] == namespace:
                loop.add(str(key_of(each)))

    def close(self) -> None:
        self._announcer.close()
