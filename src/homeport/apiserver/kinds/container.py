"""What is wrong with a container.

Not checked: security contexts, resize policies, resource claims, and the values of hugepages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from homeport.apiserver.kinds.check import (
    PROTOCOLS,
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    label_key,
    missing,
    named,
    not_negative,
    one_of,
    port,
    port_name_errors,
    port_number,
    required,
    unsupported,
)
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
# Known to the downward API, but not for environment variables.
_OTHER_FIELDS = frozenset({
    "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase",
})  # fmt: skip
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_ENV_NAME = re.compile(r"[ -<>-~]+").fullmatch
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]").fullmatch


def containers(field: str, found: list[Json], volumes: Mapping[str, Json]) -> Iterator[Cause]:
    if not found:
        yield required(field)
        return
    names: set[str] = set()
    for i, container in enumerate(found):
        at, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(at, container, volumes)
        if name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        yield from _lifecycle(at, container)
    yield from _host_ports(field, found)


def init_containers(field: str, found: list[Json], volumes: Mapping[str, Json], taken: set[str]) -> Iterator[Cause]:
    for i, container in enumerate(found):
        at, name = f"{field}[{i}]", container.get("name", "")
        yield from container_alone(at, container, volumes)
        if name in taken:
            yield duplicate(f"{at}.name", name)
        elif name:
            taken.add(name)
        if container.get("restartPolicy") == "Always":
            yield from _lifecycle(at, container)
            continue
        for part in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(part):
                yield forbidden(f"{at}.{part}", "may not be set for init containers without restartPolicy=Always")


def container_alone(at: str, container: Json, volumes: Mapping[str, Json]) -> Iterator[Cause]:
    name = container.get("name", "")
    if name:
        yield from named(f"{at}.name", name, dns_label)
    else:
        yield required(f"{at}.name")
    if not container.get("image"):
        yield required(f"{at}.image")
    policies = ("File", "FallbackToLogsOnError")
    yield from one_of(f"{at}.terminationMessagePolicy", container.get("terminationMessagePolicy", ""), policies)
    yield from _ports(f"{at}.ports", container.get("ports") or [])
    for i, variable in enumerate(container.get("env") or ()):
        yield from _variable(f"{at}.env[{i}]", variable)
    for i, source in enumerate(container.get("envFrom") or ()):
        yield from _variables(f"{at}.envFrom[{i}]", source)
    yield from _mounts(f"{at}.volumeMounts", container, volumes)
    yield from one_of(f"{at}.imagePullPolicy", container.get("imagePullPolicy", ""), _PULL_POLICIES)
    yield from resources(f"{at}.resources", container.get("resources") or {})


def _ports(field: str, found: list[Json]) -> Iterator[Cause]:
    names: set[str] = set()
    for i, item in enumerate(found):
        at, name = f"{field}[{i}]", item.get("name", "")
        if name:
            wrong = list(port_name_errors(name))
            yield from (invalid(f"{at}.name", name, text) for text in wrong)
            if not wrong and name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        if not item.get("containerPort"):
            yield required(f"{at}.containerPort")
        else:
            yield from port_number(f"{at}.containerPort", item["containerPort"])
        if item.get("hostPort"):
            yield from port_number(f"{at}.hostPort", item["hostPort"])
        yield from one_of(f"{at}.protocol", item.get("protocol", ""), PROTOCOLS)


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


def _variable(at: str, variable: Json) -> Iterator[Cause]:
    name = variable.get("name", "")
    if name:
        yield from named(f"{at}.name", name, env_name)
    else:
        yield required(f"{at}.name")
    source = variable.get("valueFrom")
    if source is None:
        return
    field = f"{at}.valueFrom"
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
        yield from _field_ref(field, source)
    elif kind == "resourceFieldRef":
        if not source.get("resource"):
            yield required(f"{field}.resource")
    elif kind in ("configMapKeyRef", "secretKeyRef"):
        yield from named(f"{field}.name", source.get("name", ""), dns_subdomain)
        if not source.get("key"):
            yield required(f"{field}.key")


def _field_ref(field: str, source: Json) -> Iterator[Cause]:
    path = source.get("fieldPath", "")
    if not path:
        yield required(f"{field}.fieldPath")
        return
    subscript = _SUBSCRIPT(path)
    if subscript is not None:
        key = subscript[2].lower() if subscript[1].endswith("annotations") else subscript[2]
        yield from named(field, key, label_key)
    elif path not in _ENV_FIELDS:
        if path in _OTHER_FIELDS:
            yield unsupported(f"{field}.fieldPath", path, _ENV_FIELDS)
        else:
            detail = f"error converting fieldPath: field label not supported: {path}"
            yield invalid(f"{field}.fieldPath", path, detail)


def _variables(at: str, source: Json) -> Iterator[Cause]:
    if source.get("prefix"):
        yield from named(f"{at}.prefix", source["prefix"], env_name)
    given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    for kind in given:
        if not source[kind].get("name"):
            yield required(f"{at}.{kind}.name")
    if not given:
        yield invalid(at.rpartition("[")[0], "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        yield invalid(at.rpartition("[")[0], "", "may not have more than one field specified at a time")


def _mounts(field: str, container: Json, volumes: Mapping[str, Json]) -> Iterator[Cause]:
    paths: set[str] = set()
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        at, name, path = f"{field}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield missing(f"{at}.name", name)
        if not path:
            yield required(f"{at}.mountPath")
        if path in paths:
            yield invalid(f"{at}.mountPath", path, "must be unique")
        paths.add(path)
        if mount.get("subPath"):
            yield from descending(f"{field}.subPath", mount["subPath"])


def descending(field: str, path: str) -> Iterator[Cause]:
    """A relative path that stays below where it starts."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def resources(field: str, found: Json) -> Iterator[Cause]:
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for key, amount in limits.items():
        yield from _amount(f"{field}.limits[{key}]", key, amount)
    for key, amount in requests.items():
        yield from _amount(f"{field}.requests[{key}]", key, amount)
        overcommit = key in _STANDARD or ("/" not in key and not key.startswith("hugepages-"))
        limit = limits.get(key)
        if limit is None:
            if not overcommit:
                yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        elif not overcommit and parse_quantity(amount) != parse_quantity(limit):
            yield invalid(f"{field}.requests", amount, f"must be equal to {key} limit of {limit}")
        elif parse_quantity(limit) < parse_quantity(amount):
            yield invalid(f"{field}.requests", amount, f"must be less than or equal to {key} limit of {limit}")


def _amount(field: str, key: str, amount: str) -> Iterator[Cause]:
    yield from named(field, key, label_key)
    if "/" not in key and key not in _STANDARD and not key.startswith("hugepages-"):
        yield invalid(field, key, "must be a standard resource type or fully qualified")
        yield invalid(field, key, "must be a standard resource for containers")
    value = parse_quantity(amount)
    if value.amount < 0:
        yield invalid(field, amount, "must be greater than or equal to 0")
    elif "/" in key and value.amount != value.value:
        yield invalid(field, amount, "must be an integer")


def _lifecycle(at: str, container: Json) -> Iterator[Cause]:
    for field in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(field)
        if handler is not None:
            yield from _handler(f"{at}.lifecycle.{field}", handler)
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is None:
            continue
        yield from _handler(f"{at}.{field}", probe)
        for number in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ):
            yield from not_negative(f"{at}.{field}.{number}", probe.get(number))
        if field != "readinessProbe" and probe.get("successThreshold") != 1:
            yield invalid(f"{at}.{field}.successThreshold", probe.get("successThreshold"), "must be 1")


def _handler(field: str, handler: Json) -> Iterator[Cause]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        yield required(field, "must specify a handler type")
    for k, kind in enumerate(given):
        if k:
            yield forbidden(f"{field}.{kind}", "may not specify more than 1 handler type")
        elif kind == "exec":
            if not handler[kind].get("command"):
                yield required(f"{field}.exec.command")
        elif kind in ("httpGet", "tcpSocket", "grpc"):
            yield from port(f"{field}.{kind}.port", handler[kind].get("port", 0))
            if kind == "httpGet":
                yield from one_of(f"{field}.httpGet.scheme", handler[kind].get("scheme", ""), ("HTTP", "HTTPS"))
