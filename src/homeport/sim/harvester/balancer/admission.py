"""What harvester-load-balancer's webhooks change and refuse."""

from __future__ import annotations

from collections.abc import Callable

from homeport.apiserver.verb.admission import CREATE, DELETE, UPDATE, Admission, Attributes
from homeport.client.errors import Forbidden
from homeport.sim.harvester.balancer.range import Range, parse_ranges, range_of
from homeport.sim.harvester.balancer.select import GLOBAL, GROUP, Requirement, is_global, matches, selector_of
from homeport.sim.harvester.kind import IP_POOL, LOAD_BALANCER, NAD, VMI, Json
from homeport.sim.harvester.mirror import Mirror
from homeport.sim.harvester.object import labels, leaving, notes, status_of

VID = f"{GROUP}/vid"
_VLAN = "network.harvesterhci.io/vlan-id"
_MOST = 65535
_WEBHOOK = "validator.harvester-system.harvester-load-balancer-webhook"


class BalancerAdmission:
    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def install(self, admission: Admission) -> None:
        admission.on(GROUP, IP_POOL.plural, self._mark_pool, mutating=True)
        admission.on(GROUP, IP_POOL.plural, self._check_pool)
        admission.on(GROUP, IP_POOL.plural, self._check_pool_gone, (DELETE,))
        admission.on(GROUP, LOAD_BALANCER.plural, self._mark_balancer, mutating=True)
        admission.on(GROUP, LOAD_BALANCER.plural, self._check_balancer)

    # -- pools -------------------------------------------------------------------------------------------------

    def _mark_pool(self, attributes: Attributes) -> None:
        pool = attributes.object
        if pool is None or leaving(pool):
            return
        network = self._mirror.get(NAD, selector_of(pool).get("network", ""))
        vlan = labels(network).get(_VLAN, "0") if network is not None else "0"
        marks = {VID: vlan, GLOBAL: "true" if is_global(pool) else "false"}
        pool["metadata"]["labels"] = {**labels(pool), **marks}

    def _check_pool(self, attributes: Attributes) -> None:
        pool = attributes.object
        if pool is None or leaving(pool):
            return
        verb = "create" if attributes.operation == CREATE else "update"
        try:
            self._check_ranges(pool)
            self._check_selector(pool)
        except ValueError as error:
            raise _refused(f"can't {verb} IP pool {pool['metadata']['name']} because {error}") from error

    def _check_pool_gone(self, attributes: Attributes) -> None:
        if attributes.old is not None and status_of(attributes.old).get("allocated"):
            raise _refused("can't delete pool before releasing all the allocated IP")

    def _check_ranges(self, pool: Json) -> None:
        raw = pool["spec"].get("ranges") or []
        if not raw:
            raise ValueError("range can't be empty")
        ranges = parse_ranges(raw)
        for number, each in enumerate(ranges):
            for other in ranges[number + 1 :]:
                if each.overlaps(other):
                    raise ValueError(f"there are overlaps between range {each} and {other}")
        for other_pool in self._others(pool):
            if _overlap(ranges, parse_ranges(other_pool["spec"]["ranges"])):
                shown = ",".join(str(each) for each in ranges)
                raise ValueError(f"the ranges {shown} overlap with other pools")
        for address in status_of(pool).get("allocated") or {}:
            if range_of(ranges, address) is None:
                raise ValueError(f"allocated IP {address} is excluded")

    def _check_selector(self, pool: Json) -> None:
        if is_global(pool):
            for other in self._others(pool):
                if labels(other).get(GLOBAL) == "true":
                    raise ValueError(f"there is already a global IP pool: {other['metadata']['name']}")
            return
        selector = selector_of(pool)
        scopes = selector.get("scope") or []
        for number, scope in enumerate(scopes):
            rest = {**selector, "scope": scopes[number + 1 :]}
            if matches(rest, _requirement(selector, scope)):
                raise ValueError(f"selector {selector} is invalid: scope overlaps")
        for other in self._others(pool):
            if not is_global(other):
                _check_apart(selector, selector_of(other), other["metadata"]["name"])

    def _others(self, pool: Json) -> list[Json]:
        return [each for each in self._mirror.all(IP_POOL) if each["metadata"]["name"] != pool["metadata"]["name"]]

    # -- load balancers ----------------------------------------------------------------------------------------

    def _mark_balancer(self, attributes: Attributes) -> None:
        balancer = attributes.object
        if balancer is None or leaving(balancer):
            return
        told = {**notes(balancer), f"{GROUP}/namespace": attributes.namespace}
        if balancer["spec"].get("workloadType") == "cluster":
            told[f"{GROUP}/project"] = told.get(f"{GROUP}/project", "")
            told[f"{GROUP}/network"] = told.get(f"{GROUP}/network") or self._network(attributes.namespace, told)
        balancer["metadata"]["annotations"] = told
        check = balancer["spec"].get("healthCheck")
        if check and check.get("port"):
            usual = {"successThreshold": 2, "failureThreshold": 2, "periodSeconds": 1, "timeoutSeconds": 1}
            balancer["spec"]["healthCheck"] = {**check, **{k: check.get(k) or v for k, v in usual.items()}}

    def _network(self, namespace: str, told: dict[str, str]) -> str:
        """Of the guest cluster's VMs: the first one that names a network."""
        cluster = told.get(f"{GROUP}/cluster", "")
        for vmi in self._mirror.all(VMI) if cluster else ():
            if vmi["metadata"]["namespace"] == namespace and vmi["metadata"]["name"].startswith(cluster):
                for network in vmi["spec"].get("networks") or ():
                    if name := (network.get("multus") or {}).get("networkName"):
                        return str(name)
        return ""

    def _check_balancer(self, attributes: Attributes) -> None:
        balancer, old = attributes.object, attributes.old
        if balancer is None or leaving(balancer):
            return
        verb = "create" if attributes.operation == CREATE else "update"
        try:
            _check_listeners(balancer["spec"])
            _check_health(balancer["spec"])
            if attributes.operation == UPDATE and old is not None:
                _check_same("IPAM", old["spec"].get("ipam", ""), balancer["spec"].get("ipam", ""), "dhcp")
                before, after = old["spec"].get("workloadType", ""), balancer["spec"].get("workloadType", "")
                _check_same("WorkloadType", before, after, "cluster")
        except ValueError as error:
            name = f"{attributes.namespace}/{balancer['metadata'].get('name', '')}"
            raise _refused(f"{verb} loadbalancer {name} failed: {error}") from error


def _check_listeners(spec: Json) -> None:
    if spec.get("workloadType") == "cluster":
        return
    listeners = spec.get("listeners") or []
    if not listeners:
        raise ValueError("the loadbalancer needs to have at least one listener")
    _check_unique(listeners, "name", lambda each: str(each.get("name", "")))
    _check_unique(listeners, "port", lambda each: f"{each.get('protocol', '')}:{each['port']}")
    _check_unique(listeners, "backend port", lambda each: f"{each.get('protocol', '')}:{each['backendPort']}")
    for each in listeners:
        for field, what in (("port", "port"), ("backendPort", "backend port")):
            if not 1 <= each[field] <= _MOST:
                bound = f"<= {_MOST}" if each[field] > _MOST else ">= 1"
                raise ValueError(f"listener {what} {each[field]} must {bound}")


def _check_unique(listeners: list[Json], what: str, value: Callable[[Json], str]) -> None:
    seen: set[str] = set()
    for each in listeners:
        if value(each) in seen:
            raise ValueError(f"listener has duplicate {what} {value(each)}")
        seen.add(value(each))


def _check_health(spec: Json) -> None:
    port = (spec.get("healthCheck") or {}).get("port")
    if not port or spec.get("workloadType") == "cluster":
        return
    fitting = [each for each in spec.get("listeners") or () if each["backendPort"] == port]
    if not fitting:
        raise ValueError(f"healthcheck port {port} is not in listener backend port list")
    if all(each.get("protocol", "TCP") != "TCP" for each in fitting):
        raise ValueError(f"healthcheck port {port} can only be a TCP backend port")


def _check_same(what: str, before: str, after: str, special: str) -> None:
    if (before == special) != (after == special):
        raise ValueError(f"can't change the {what} from {before} to {after}")


def _check_apart(selector: Json, other: Json, name: str) -> None:
    mine, theirs = selector.get("priority") or 0, other.get("priority") or 0
    if theirs and mine == theirs:
        raise ValueError(f"the priority can't be the same as the pool {name}")
    if mine or theirs:
        return
    for scope in selector.get("scope") or ():
        if matches(other, _requirement(selector, scope)):
            text = f"scope selector is same as the pool {name} with priority 0"
            raise ValueError(f"{text}, set a different priority or scope")


def _requirement(selector: Json, scope: Json) -> Requirement:
    return Requirement(
        selector.get("network", ""), scope.get("project", ""), scope.get("namespace", ""), scope.get("guestCluster", "")
    )


def _overlap(ranges: list[Range], others: list[Range]) -> bool:
    return any(each.overlaps(other) for each in ranges for other in others)


def _refused(message: str) -> Forbidden:
    return Forbidden(f'admission webhook "{_WEBHOOK}" denied the request: {message}')
