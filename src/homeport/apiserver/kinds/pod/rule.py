"""What is wrong with a PodSpec.

Not checked: resources of the Pod as a whole, and scheduling groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.amount import requirements
from homeport.apiserver.kinds.check import (
    MAX_INT32,
    Struct,
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    ip_address,
    label_key,
    label_value,
    labels,
    missing,
    named,
    one_of,
    required,
    too_long,
    unsupported,
    within,
)
from homeport.apiserver.kinds.cluster.node import taint_effect
from homeport.apiserver.kinds.pod.container import PodContext, container_alone, containers, init_containers
from homeport.apiserver.kinds.pod.placement import affinity, spread_constraints
from homeport.apiserver.kinds.pod.security import host_namespaces, host_process, operating_system, pod_context
from homeport.apiserver.kinds.pod.volume import volumes
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_OPERATORS = ("Equal", "Exists", "", "Lt", "Gt")


def pod_spec(field: str, spec: Json) -> Iterator[Cause]:
    usable, wrong = volumes(f"{field}.volumes", spec.get("volumes") or [])
    yield from wrong
    yield from _resource_claims(f"{field}.resourceClaims", spec.get("resourceClaims") or [])
    around = PodContext.of(spec, usable)
    found = spec.get("containers") or []
    yield from containers(f"{field}.containers", found, around)
    names = {container.get("name", "") for container in found}
    yield from init_containers(f"{field}.initContainers", spec.get("initContainers") or [], around, names)
    yield from ephemeral_containers(f"{field}.ephemeralContainers", spec.get("ephemeralContainers") or [], spec)
    yield from _host_network(field, spec)
    yield from _environment(field, spec)
    yield from _placement(field, spec)
    yield from _identity(field, spec)
    yield from _runtime(field, spec)


def _environment(field: str, spec: Json) -> Iterator[Cause]:
    yield from one_of(f"{field}.restartPolicy", spec.get("restartPolicy", ""), ("Always", "OnFailure", "Never"))
    yield from one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS_POLICIES)
    yield from labels(f"{field}.nodeSelector", spec.get("nodeSelector"))
    yield from pod_context(f"{field}.securityContext", spec.get("securityContext") or {}, spec)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{field}.shareProcessNamespace", True, detail)
    for i, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield required(f"{field}.imagePullSecrets[{i}].name")


def _placement(field: str, spec: Json) -> Iterator[Cause]:
    yield from affinity(f"{field}.affinity", spec.get("affinity") or {})
    yield from _dns(f"{field}.dnsConfig", spec)
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        yield from named(f"{field}.readinessGates[{i}].conditionType", gate.get("conditionType", ""), label_key)
    yield from _gates(f"{field}.schedulingGates", spec.get("schedulingGates") or [])
    spread = spec.get("topologySpreadConstraints") or []
    yield from spread_constraints(f"{field}.topologySpreadConstraints", spread)
    yield from host_process(field, spec)
    yield from host_namespaces(field, spec)


def _identity(field: str, spec: Json) -> Iterator[Cause]:
    yield from _host_name(field, spec)
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_subdomain)
    if spec.get("activeDeadlineSeconds") is not None:
        yield from within(f"{field}.activeDeadlineSeconds", spec["activeDeadlineSeconds"], 1, MAX_INT32)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_label)


def _runtime(field: str, spec: Json) -> Iterator[Cause]:
    for i, toleration in enumerate(spec.get("tolerations") or ()):
        yield from check_toleration(f"{field}.tolerations[{i}]", toleration)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_address(f"{field}.hostAliases[{i}].ip", alias.get("ip", ""))
        for k, host in enumerate(alias.get("hostnames") or ()):
            yield from named(f"{field}.hostAliases[{i}].hostnames[{k}]", host, dns_subdomain)
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from named(f"{field}.{name}", spec[name], dns_subdomain)
    if spec.get("preemptionPolicy") is not None:
        yield from one_of(f"{field}.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
    yield from requirements(f"{field}.overhead", {"limits": spec.get("overhead") or {}})
    yield from operating_system(field, spec)


def _resource_claims(field: str, found: list[Json]) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(found):
        subfield, name = f"{field}[{i}]", claim.get("name", "")
        if not name:
            yield required(f"{subfield}.name")
        elif name in seen:
            yield duplicate(f"{subfield}.name", name)
        else:
            yield from named(f"{subfield}.name", name, dns_label)
        seen.add(name)
        sources = [part for part in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(part) is not None]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(subfield, Struct(_claim(claim)), detail)
        elif not sources:
            yield invalid(
                subfield, Struct(_claim(claim)), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
        for part in sources:
            yield from named(f"{subfield}.{part}", claim[part], dns_subdomain)


def _claim(claim: Json) -> Json:
    return {
        "Name": claim.get("name", ""),
        "ResourceClaimName": claim.get("resourceClaimName"),
        "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
    }


def _host_name(field: str, spec: Json) -> Iterator[Cause]:
    name, subfield = spec.get("hostnameOverride"), f"{field}.hostnameOverride"
    if name is None:
        return
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            yield forbidden(subfield, f"may not be specified when {other} is true")
    if len(name) > 64:
        yield too_long(subfield, 64)
    yield from named(subfield, name, dns_subdomain)


def ephemeral_containers(field: str, found: list[Json], spec: Json) -> Iterator[Cause]:
    """Containers that were added to a running Pod: few of the usual fields make sense for them."""
    if not found:
        return
    usable, _ = volumes("", spec.get("volumes") or [])
    others = {c.get("name", "") for part in ("containers", "initContainers") for c in spec.get(part) or ()}
    taken = set(others)
    for i, container in enumerate(found):
        subfield, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(subfield, container, PodContext.of(spec, usable))
        yield from padded_image(subfield, container)
        if name in taken:
            yield duplicate(f"{subfield}.name", name)
        taken.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            yield missing(f"{subfield}.targetContainerName", target)
        for part in _NOT_EPHEMERAL:
            if container.get(part):
                yield forbidden(f"{subfield}.{part}", "cannot be set for an Ephemeral Container")
        for k, mount in enumerate(container.get("volumeMounts") or ()):
            for part in ("subPath", "subPathExpr"):
                if mount.get(part):
                    yield forbidden(f"{subfield}.volumeMounts[{k}].{part}", "cannot be set for an Ephemeral Container")


def padded_image(field: str, container: Json) -> Iterator[Cause]:
    image = container.get("image", "")
    if image != image.strip():
        yield invalid(f"{field}.image", image, "must not have leading or trailing whitespace")


def _host_network(field: str, spec: Json) -> Iterator[Cause]:
    if not spec.get("hostNetwork"):
        return
    for i, container in enumerate(spec.get("containers") or ()):
        for k, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                subfield = f"{field}.containers[{i}].ports[{k}].hostPort"
                yield invalid(subfield, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


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


def check_toleration(field: str, found: Json) -> Iterator[Cause]:
    key, operator, value = found.get("key", ""), found.get("operator", ""), found.get("value", "")
    if key:
        yield from named(f"{field}.key", key, label_key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{field}.operator", operator, detail)
    if found.get("tolerationSeconds") is not None and found.get("effect") != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", found.get("effect", ""), detail)
    if operator in ("Equal", ""):
        yield from named(f"{field}.operator", value, label_value)
    elif operator == "Exists":
        if value:
            yield invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator not in _OPERATORS:
        yield unsupported(f"{field}.operator", operator, ("Equal", "Exists"))
    yield from taint_effect(f"{field}.effect", found.get("effect", ""), optional=True)
