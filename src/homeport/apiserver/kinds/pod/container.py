"""What is wrong with a container."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from homeport.apiserver.kinds.amount import requirements
from homeport.apiserver.kinds.check import (
    PROTOCOLS,
    config_key,
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    missing,
    named,
    not_negative,
    one_of,
    port,
    port_name_errors,
    port_number,
    required,
    too_many,
    unsupported,
)
from homeport.apiserver.kinds.pod.downward import VARIABLES, field_ref, resource_ref
from homeport.apiserver.kinds.pod.path import descending, no_backsteps
from homeport.apiserver.kinds.pod.security import container_context
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_RESTARTS = ("Always", "Never", "OnFailure")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY = ("Disabled", "Enabled", "IfPossible")
_HEADER = re.compile(r"[-A-Za-z0-9]+").fullmatch
_ENV_NAME = re.compile(r"[ -<>-~]+").fullmatch


@dataclass(frozen=True, slots=True)
class PodContext:
    """The fields of a Pod that its containers are validated against. `volumes` are the usable ones by name."""

    volumes: Mapping[str, Json]
    claims: Collection[str]
    restart_policy: str
    grace_seconds: int | None
    host_users: bool

    @classmethod
    def of(cls, spec: Json, volumes: Mapping[str, Json]) -> PodContext:
        return cls(
            volumes=volumes,
            claims={claim.get("name", "") for claim in spec.get("resourceClaims") or ()},
            restart_policy=spec.get("restartPolicy", ""),
            grace_seconds=spec.get("terminationGracePeriodSeconds"),
            host_users=spec.get("hostUsers") is not False,
        )


def containers(field: str, found: list[Json], around: PodContext) -> Iterator[Cause]:
    if not found:
        yield required(field)
        return
    names: set[str] = set()
    for i, container in enumerate(found):
        subfield, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(subfield, container, around)
        if name in names:
            yield duplicate(f"{subfield}.name", name)
        names.add(name)
        yield from _lifecycle(subfield, container, around)
        yield from _restarts(subfield, container)
    yield from _host_ports(field, found)


def init_containers(field: str, found: list[Json], around: PodContext, taken: set[str]) -> Iterator[Cause]:
    for i, container in enumerate(found):
        subfield, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(subfield, container, around)
        yield from _restarts(subfield, container)
        if name in taken:
            yield duplicate(f"{subfield}.name", name)
        elif name:
            taken.add(name)
        yield from _host_ports(field, [container])
        if container.get("restartPolicy") == "Always":
            yield from _lifecycle(subfield, container, around)
            continue
        for part in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(part):
                yield forbidden(f"{subfield}.{part}", "may not be set for init containers without restartPolicy=Always")
        for k, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid(f"{subfield}.resizePolicy[{k}].restartPolicy", "RestartContainer", detail)


def container_alone(field: str, container: Json, around: PodContext) -> Iterator[Cause]:
    name = container.get("name", "")
    if name:
        yield from named(f"{field}.name", name, dns_label)
    else:
        yield required(f"{field}.name")
    if not container.get("image"):
        yield required(f"{field}.image")
    policies = ("File", "FallbackToLogsOnError")
    yield from one_of(f"{field}.terminationMessagePolicy", container.get("terminationMessagePolicy", ""), policies)
    yield from _ports(f"{field}.ports", container.get("ports") or [])
    for i, variable in enumerate(container.get("env") or ()):
        yield from _variable(f"{field}.env[{i}]", variable)
    for i, source in enumerate(container.get("envFrom") or ()):
        yield from _variables(f"{field}.envFrom[{i}]", source)
    yield from _mounts(f"{field}.volumeMounts", container, around.volumes)
    yield from _devices(f"{field}.volumeDevices", container, around.volumes)
    yield from one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy", ""), _PULL_POLICIES)
    yield from requirements(f"{field}.resources", container.get("resources") or {}, around.claims)
    yield from _resizes(f"{field}.resizePolicy", container.get("resizePolicy") or [], around.restart_policy)
    context = container.get("securityContext")
    if context is not None:
        yield from container_context(f"{field}.securityContext", context, host_users=around.host_users)


def _resizes(field: str, found: list[Json], restart: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, policy in enumerate(found):
        name, action = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{field}[{i}]", name)
        seen.add(name)
        yield from one_of(field, name, ("cpu", "memory"))
        yield from one_of(field, action, ("NotRequired", "RestartContainer"))
        if restart == "Never" and action != "NotRequired":
            yield invalid(field, action, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _restarts(subfield: str, container: Json) -> Iterator[Cause]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if rules:
            yield required(f"{subfield}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTARTS:
        yield unsupported(f"{subfield}.restartPolicy", policy, _RESTARTS)
    if len(rules) > 20:
        yield too_many(f"{subfield}.restartPolicyRules", len(rules), 20)
    for i, rule in enumerate(rules):
        field, codes = f"{subfield}.restartPolicyRules[{i}]", rule.get("exitCodes")
        actions = ("Restart", "RestartAllContainers")
        if rule.get("action", "") not in actions:
            yield unsupported(f"{field}.action", rule.get("action", ""), actions)
        if codes is None:
            yield required(f"{field}.exitCodes", "must be specified")
            continue
        if codes.get("operator", "") not in ("In", "NotIn"):
            yield unsupported(f"{field}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            yield too_many(f"{field}.exitCodes.values", len(codes["values"]), 255)


def _ports(field: str, found: list[Json]) -> Iterator[Cause]:
    names: set[str] = set()
    for i, item in enumerate(found):
        subfield, name = f"{field}[{i}]", item.get("name", "")
        if name:
            wrong = list(port_name_errors(name))
            yield from (invalid(f"{subfield}.name", name, text) for text in wrong)
            if not wrong and name in names:
                yield duplicate(f"{subfield}.name", name)
            names.add(name)
        if not item.get("containerPort"):
            yield required(f"{subfield}.containerPort")
        else:
            yield from port_number(f"{subfield}.containerPort", item["containerPort"])
        if item.get("hostPort"):
            yield from port_number(f"{subfield}.hostPort", item["hostPort"])
        yield from one_of(f"{subfield}.protocol", item.get("protocol", ""), PROTOCOLS)


def _host_ports(field: str, found: list[Json]) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, container in enumerate(found):
        for k, item in enumerate(container.get("ports") or ()):
            if not item.get("hostPort"):
                continue
            use = f"{item.get('protocol', '')}/{item.get('hostIP', '')}/{item['hostPort']}"
            if use in seen:
                yield duplicate(f"{field}[{i}].ports[{k}].hostPort", use)
            seen.add(use)


def env_name(name: str) -> str | None:
    if _ENV_NAME(name):
        return None
    return "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _variable(subfield: str, variable: Json) -> Iterator[Cause]:
    name = variable.get("name", "")
    if name:
        yield from named(f"{subfield}.name", name, env_name)
    else:
        yield required(f"{subfield}.name")
    source = variable.get("valueFrom")
    if source is None:
        return
    field = f"{subfield}.valueFrom"
    given = [kind for kind in _ENV_SOURCES if source.get(kind) is not None]
    for kind in given:
        yield from _variable_source(f"{field}.{kind}", kind, source[kind])
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(field, "", f"must specify one of: {listed}")
    elif variable.get("value"):
        yield invalid(field, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(field, "", "may not have more than one field specified at a time")


def _variable_source(field: str, kind: str, source: Json) -> Iterator[Cause]:
    if kind == "fieldRef":
        yield from field_ref(field, source, VARIABLES)
    elif kind == "resourceFieldRef":
        yield from resource_ref(field, source)
    elif kind == "fileKeyRef":
        for part, rule in (("key", env_name), ("volumeName", dns_label)):
            if source.get(part):
                yield from named(f"{field}.{part}", source[part], rule)
            else:
                yield required(f"{field}.{part}")
        if not source.get("path"):
            yield required(f"{field}.path")
        yield from no_backsteps(f"{field}.path", source.get("path", ""))
    else:
        yield from named(f"{field}.name", source.get("name", ""), dns_subdomain)
        if source.get("key"):
            yield from named(f"{field}.key", source["key"], config_key)
        else:
            yield required(f"{field}.key")


def _variables(field: str, source: Json) -> Iterator[Cause]:
    if source.get("prefix"):
        yield from named(f"{field}.prefix", source["prefix"], env_name)
    given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    for kind in given:
        if not source[kind].get("name"):
            yield required(f"{field}.{kind}.name")
    if not given:
        yield invalid(field.rpartition("[")[0], "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        yield invalid(field.rpartition("[")[0], "", "may not have more than one field specified at a time")


def _mounts(field: str, container: Json, volumes: Mapping[str, Json]) -> Iterator[Cause]:
    paths: set[str] = set()
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        subfield, name, path = f"{field}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{subfield}.name")
        if name not in volumes:
            yield missing(f"{subfield}.name", name)
        if not path:
            yield required(f"{subfield}.mountPath")
        if path in paths:
            yield invalid(f"{subfield}.mountPath", path, "must be unique")
        paths.add(path)
        if name in devices:
            yield invalid(f"{subfield}.name", name, "must not already exist in volumeDevices")
        if path in devices.values():
            yield invalid(f"{subfield}.mountPath", path, "must not already exist as a path in volumeDevices")
        yield from _subpaths(field, subfield, mount)
        privileged = bool((container.get("securityContext") or {}).get("privileged"))
        yield from _propagation(f"{field}.mountPropagation", mount.get("mountPropagation"), privileged)
        yield from _read_only(f"{field}.recursiveReadOnly", mount)


def _subpaths(field: str, subfield: str, mount: Json) -> Iterator[Cause]:
    if mount.get("subPath"):
        yield from descending(f"{field}.subPath", mount["subPath"])
    if mount.get("subPathExpr"):
        if mount.get("subPath"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{subfield}.subPathExpr", mount["subPathExpr"], detail)
        yield from descending(f"{field}.subPathExpr", mount["subPathExpr"])


def _propagation(field: str, mode: str | None, privileged: bool) -> Iterator[Cause]:
    if mode is not None and mode not in _PROPAGATIONS:
        yield unsupported(field, mode, _PROPAGATIONS)
    if mode == "Bidirectional" and not privileged:
        yield forbidden(field, "Bidirectional mount propagation is available only to privileged containers")


def _read_only(field: str, mount: Json) -> Iterator[Cause]:
    mode = mount.get("recursiveReadOnly")
    if mode in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(field, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            yield forbidden(field, "may only be specified when mountPropagation is None or not specified")
    elif mode is not None and mode not in _READ_ONLY:
        yield unsupported(field, mode, _READ_ONLY)


def _devices(field: str, container: Json, volumes: Mapping[str, Json]) -> Iterator[Cause]:
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices") or ()):
        subfield, name, path = f"{field}[{i}]", device.get("name", ""), device.get("devicePath", "")
        source = volumes.get(name)
        if not name:
            yield required(f"{subfield}.name")
        if name in names:
            yield invalid(f"{subfield}.name", name, "must be unique")
        if source is not None and not source.keys() & {"persistentVolumeClaim", "ephemeral"}:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{subfield}.name", name, detail)
        if source is None:
            yield missing(f"{subfield}.name", name)
        if not path:
            yield required(f"{subfield}.devicePath")
        if path in paths:
            yield invalid(f"{subfield}.devicePath", path, "must be unique")
        if list(no_backsteps(subfield, path)):
            yield invalid(f"{subfield}.devicePath", path, "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mounts:
            yield invalid(f"{subfield}.name", name, "must not already exist in volumeMounts")
        if path in mounts.values():
            yield invalid(f"{subfield}.devicePath", path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _lifecycle(subfield: str, container: Json, around: PodContext) -> Iterator[Cause]:
    lifecycle = container.get("lifecycle") or {}
    for field in ("postStart", "preStop"):
        if lifecycle.get(field) is not None:
            yield from _handler(f"{subfield}.lifecycle.{field}", lifecycle[field], around)
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is not None:
            yield from _probe(f"{subfield}.{field}", probe, around)
            if field != "readinessProbe" and probe.get("successThreshold") != 1:
                yield invalid(f"{subfield}.{field}.successThreshold", probe.get("successThreshold"), "must be 1")


def _probe(field: str, probe: Json, around: PodContext) -> Iterator[Cause]:
    yield from _handler(field, probe, around)
    counts = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    for number in counts:
        yield from not_negative(f"{field}.{number}", probe.get(number))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{field}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _handler(field: str, handler: Json, around: PodContext) -> Iterator[Cause]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        yield required(field, "must specify a handler type")
    for kind in given[:1]:
        yield from _one_handler(f"{field}.{kind}", kind, handler[kind], around)
    for kind in given[1:]:
        yield forbidden(f"{field}.{kind}", "may not specify more than 1 handler type")


def _one_handler(field: str, kind: str, found: Json, around: PodContext) -> Iterator[Cause]:
    if kind == "exec":
        if not found.get("command"):
            yield required(f"{field}.command")
    elif kind == "sleep":
        seconds, grace = found.get("seconds", 0), around.grace_seconds
        if grace is not None and not 0 <= seconds <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield invalid(field, seconds, detail)
    else:
        yield from port(f"{field}.port", found.get("port", 0))
    if kind == "httpGet":
        yield from one_of(f"{field}.scheme", found.get("scheme", ""), ("HTTP", "HTTPS"))
        for header in found.get("httpHeaders") or ():
            if not _HEADER(header.get("name", "")):
                detail = (
                    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
                    "used for validation is '[-A-Za-z0-9]+')"
                )
                yield invalid(f"{field}.httpHeaders", header.get("name", ""), detail)
