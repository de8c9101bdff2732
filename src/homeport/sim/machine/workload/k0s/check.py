"""What k0s checks in a ClusterConfig before it uses it."""

from __future__ import annotations

from ipaddress import ip_interface, ip_network

from homeport.sim.machine.workload.kind import Json

_PROVIDERS = ("kuberouter", "calico", "custom")


def problems_of(spec: Json, *, single: bool = False) -> list[str]:
    network, found = spec.get("network") or {}, []
    for name in ("podCIDR", "serviceCIDR"):
        try:
            ip_network(str(network.get(name) or "10.0.0.0/8"))
        except ValueError as wrong:
            found.append(f"spec: network: invalid {name}: {wrong}")
    provider = network.get("provider") or "kuberouter"
    if provider not in _PROVIDERS:
        found.append(f"spec: network: unsupported network provider: {provider}")
    kind = (spec.get("storage") or {}).get("type") or "etcd"
    if kind not in ("etcd", "kine"):
        found.append(f"spec: storage: unsupported storage type: {kind}")
    balancing = network.get("controlPlaneLoadBalancing") or {}
    if balancing.get("enabled"):
        if single:
            found.append("control plane load balancing cannot be used in a single-node cluster")
        found += _balancing_problems(balancing)
    return [*found, *_chart_problems((spec.get("extensions") or {}).get("helm") or {})]


def _chart_problems(helm: Json) -> list[str]:
    found = [
        f"spec: extensions: helm: charts: {name}: Required value"
        for name in ("name", "chartname", "namespace")
        if any(not chart.get(name) for chart in helm.get("charts") or ())
    ]
    if any(not each.get("name") or not each.get("url") for each in helm.get("repositories") or ()):
        found.append("spec: extensions: helm: repositories: name and url: Required value")
    return found


def _balancing_problems(balancing: Json) -> list[str]:
    where, found = "spec: network: controlPlaneLoadBalancing", []
    kind = balancing.get("type") or "Keepalived"
    if kind != "Keepalived":
        found.append(f"{where}: unsupported CPLB type: {kind}. Only allowed value: Keepalived")
    for instance in (balancing.get("keepalived") or {}).get("vrrpInstances") or ():
        password, addresses = str(instance.get("authPass") or ""), instance.get("virtualIPs") or ()
        if not password:
            found.append(f"{where}: keepalived: AuthPass must be defined")
        elif len(password) > 8:
            found.append(f"{where}: keepalived: AuthPass must be 8 characters or less")
        if not addresses:
            found.append(f"{where}: keepalived: VirtualIPs must be defined")
        found += [f"{where}: keepalived: VirtualIPs must be a CIDR. Got: {e}" for e in addresses if not _is_cidr(e)]
    return found


def _is_cidr(text: object) -> bool:
    try:
        ip_interface(str(text))
    except ValueError:
        return False
    return "/" in str(text)
