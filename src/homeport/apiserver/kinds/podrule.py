"""What is wrong with a PodSpec.

Not checked: affinity, topology spread, security contexts, operating systems, overhead and resource claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    MAX_INT32,
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    ip_address,
    label_key,
    label_value,
    labels,
    named,
    one_of,
    required,
    unsupported,
    within,
)
from homeport.apiserver.kinds.container import container_alone, containers, init_containers
from homeport.apiserver.kinds.node import taint_effect
from homeport.apiserver.kinds.volume import volumes
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_OPERATORS = ("Equal", "Exists", "", "Lt", "Gt")


def pod_spec(field: str, spec: Json) -> Iterator[Cause]:
    usable, wrong = volumes(f"{field}.volumes", spec.get("volumes") or [])
    yield from wrong
    found = spec.get("containers") or []
    yield from containers(f"{field}.containers", found, usable)
    names = {container.get("name", "") for container in found}
    yield from init_containers(f"{field}.initContainers", spec.get("initContainers") or [], usable, names)
    yield from _host_network(field, spec)
    yield from one_of(f"{field}.restartPolicy", spec.get("restartPolicy", ""), ("Always", "OnFailure", "Never"))
    yield from one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS_POLICIES)
    yield from labels(f"{field}.nodeSelector", spec.get("nodeSelector"))
    for i, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield required(f"{field}.imagePullSecrets[{i}].name")
    yield from _dns(f"{field}.dnsConfig", spec)
    yield from _gates(f"{field}.schedulingGates", spec.get("schedulingGates") or [])
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_subdomain)
    if spec.get("activeDeadlineSeconds") is not None:
        yield from within(f"{field}.activeDeadlineSeconds", spec["activeDeadlineSeconds"], 1, MAX_INT32)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_label)
    for i, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(f"{field}.tolerations[{i}]", toleration)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_address(f"{field}.hostAliases[{i}].ip", alias.get("ip", ""))
        for k, host in enumerate(alias.get("hostnames") or ()):
            yield from named(f"{field}.hostAliases[{i}].hostnames[{k}]", host, dns_subdomain)
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_subdomain)
    if spec.get("preemptionPolicy") is not None:
        yield from one_of(f"{field}.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))


def ephemeral_containers(field: str, found: list[Json], spec: Json) -> Iterator[Cause]:
    """Containers that were added to a running Pod: few of the usual fields make sense for them."""
    usable, _ = volumes("", spec.get("volumes") or [])
    taken = {c.get("name", "") for part in ("containers", "initContainers") for c in spec.get(part) or ()}
    for i, container in enumerate(found):
        at, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(at, container, usable)
        if name in taken:
            yield duplicate(f"{at}.name", name)
        taken.add(name)
        for part in ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources"):
            if container.get(part):
                yield forbidden(f"{at}.{part}", "cannot be set for an Ephemeral Container")


def _host_network(field: str, spec: Json) -> Iterator[Cause]:
    if not spec.get("hostNetwork"):
        return
    for i, container in enumerate(spec.get("containers") or ()):
        for k, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                at = f"{field}.containers[{i}].ports[{k}].hostPort"
                yield invalid(at, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def _dns(field: str, spec: Json) -> Iterator[Cause]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(field, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{field}.nameservers", detail)
            return
    servers = (config or {}).get("nameservers") or []
    if len(servers) > 3:
        yield invalid(f"{field}.nameservers", servers, "must not have more than 3 nameservers")
    for i, server in enumerate(servers):
        yield from ip_address(f"{field}.nameservers[{i}]", server)


def _gates(field: str, found: list[Json]) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, gate in enumerate(found):
        name = gate.get("name", "")
        yield from named(f"{field}[{i}]", name, label_key)
        if name in seen:
            yield duplicate(f"{field}[{i}]", name)
        seen.add(name)


def _toleration(at: str, found: Json) -> Iterator[Cause]:
    key, operator, value = found.get("key", ""), found.get("operator", ""), found.get("value", "")
    if key:
        yield from named(f"{at}.key", key, label_key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{at}.operator", operator, detail)
    if found.get("tolerationSeconds") is not None and found.get("effect") != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{at}.effect", found.get("effect", ""), detail)
    if operator in ("Equal", ""):
        yield from named(f"{at}.operator", value, label_value)
    elif operator == "Exists":
        if value:
            yield invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator not in _OPERATORS:
        yield unsupported(f"{at}.operator", operator, ("Equal", "Exists"))
    yield from taint_effect(f"{at}.effect", found.get("effect", ""), optional=True)
