"""What the kinds of Steward and Kamaji may say: found out when they are applied, not minutes later in a loop."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from homeport.capi import version as versions
from homeport.capi.family import is_host
from homeport.capi.object.template import immutable
from homeport.client.errors import Cause
from homeport.hosted import name as names
from homeport.hosted.etcd.dial import split_endpoint
from homeport.hosted.etcd.tenancy import RESERVED, is_name
from homeport.hosted.flavour import Flavour
from homeport.hosted.tenant.rollout import refuse_version
from homeport.machinery.address import is_address
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# The last minor version of Kubernetes that still had each admission plugin.
_PLUGINS_UNTIL = {
    "DenyEscalatingExec": 20,
    "DenyExecOnPrivileged": 20,
    "PodSecurityPolicy": 24,
    "SecurityContextDeny": 29,
    "PersistentVolumeLabel": 30,
}
_NETWORK_DEFAULTS = {"serviceCidr": "10.96.0.0/16", "podCidr": "10.244.0.0/16", "clusterDomain": "cluster.local"}
_ENDPOINT_FIELDS = {"networkProfile.address": "", "networkProfile.port": 6443, "controlPlane.service.serviceType": ""}
_NOT_READ = {
    "addons.tcpProxy": "no proxy runs on the nodes; they reach the API server at its endpoint",
    "addons.workerBootstrap.talos": "no certificate service for Talos machines runs",
    "deployment.externalClusterReference": "the Pods run in this cluster",
}
_TOPOLOGY_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"


def register(hooks: Hooks, flavour: Flavour) -> None:
    hooks.add(
        flavour.control_plane, default=default_control_plane, validate=validate_control_plane, warn=warn_control_plane
    )
    hooks.add(flavour.tenant, validate=validate_tenant, warn=warn_tenant)
    hooks.add(flavour.datastore, validate=validate_datastore)
    hooks.add(flavour.template, validate=validate_template, warn=warn_template)


# -- TenantControlPlane ------------------------------------------------------------------------------------------------


def validate_tenant(obj: Json, old: Json | None) -> list[Cause]:
    """Of an object that exists, only what changed: rules may be newer than objects."""
    meta, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if old is not None and before == spec:
        return []
    causes = list(_name_causes(str(meta.get("name") or ""))) if old is None else []
    kubernetes, network = spec.get("kubernetes") or {}, spec.get("networkProfile") or {}
    causes += _version_causes(kubernetes, (before.get("kubernetes") or {}).get("version"), "spec.kubernetes.version")
    causes += _plugin_causes(kubernetes.get("admissionControllers"), kubernetes, "spec.kubernetes")
    causes += _network_causes(network, "spec.networkProfile")
    causes += _port_causes(spec)
    causes += _override_causes(spec.get("dataStoreOverrides") or [])
    causes += _schema_causes(spec)
    causes += _fixed_causes(spec, old or {})
    gateway = ((spec.get("controlPlane") or {}).get("gateway") or {}).get("parentRefs") or []
    causes += _parent_causes(gateway, "spec.controlPlane.gateway.parentRefs")
    causes += _bootstrap_causes((spec.get("addons") or {}).get("workerBootstrap"), "spec.addons.workerBootstrap")
    return causes


def _name_causes(name: str) -> Iterator[Cause]:
    """The Service has the same name."""
    if name and (not _LABEL.fullmatch(name) or len(name) > 63):
        text = f'"{name}": must be a DNS label: lower case letters, digits and -, a letter first, at most 63 characters'
        yield Cause.invalid("metadata.name", text)


def _version_causes(given: Json, before: Any, path: str) -> Iterator[Cause]:
    version = str(given.get("version") or "")
    if not versions.is_valid(version):
        yield Cause.invalid(path, f'"{version}": not a valid version: expected for example v1.33.1')
        return
    if versions.parse(version).minor < 29:
        yield Cause.invalid(path, f'"{version}": the oldest version that is supported is v1.29.0')
    if before and versions.is_valid(str(before)) and (why := refuse_version(str(before), version)):
        yield Cause.forbidden(path, why)


def _plugin_causes(plugins: Any, given: Json, path: str) -> Iterator[Cause]:
    version = str(given.get("version") or "")
    if not versions.is_valid(version):
        return
    minor = versions.parse(version).minor
    for number, each in enumerate(plugins or ()):
        last = _PLUGINS_UNTIL.get(str(each))
        if last is not None and minor > last:
            text = f'"{each}": Kubernetes has no such admission plugin since v1.{last + 1}: remove it'
            yield Cause.invalid(f"{path}.admissionControllers[{number}]", text)


def _network_causes(network: Json, path: str) -> Iterator[Cause]:
    for field in ("serviceCidr", "podCidr"):
        for each in str(network.get(field) or "").split(","):
            if each and not _is_network(each):
                yield Cause.invalid(f"{path}.{field}", f'"{each}": expected a network such as 10.96.0.0/16')
    yield from _list_causes(network, path)
    port = network.get("port")
    if port is not None and not 0 < int(port) < 65536:
        yield Cause.invalid(f"{path}.port", f"{port}: must be from 1 to 65535")


def _list_causes(network: Json, path: str) -> Iterator[Cause]:
    services = [each for each in str(network.get("serviceCidr") or "").split(",") if _is_network(each)]
    for number, each in enumerate(network.get("dnsServiceIPs") or ()):
        at = f"{path}.dnsServiceIPs[{number}]"
        if not is_address(str(each)):
            yield Cause.invalid(at, f'"{each}": not a valid IP address')
        elif services and not any(_inside(each, one) for one in services):
            yield Cause.invalid(at, f'"{each}": must be inside {path}.serviceCidr ({", ".join(services)})')
    for number, each in enumerate(network.get("certSANs") or ()):
        if not is_host(str(each).removeprefix("*.")):
            yield Cause.invalid(f"{path}.certSANs[{number}]", f'"{each}": not a valid host name or IP address')
    for number, each in enumerate(network.get("loadBalancerSourceRanges") or ()):
        if not _is_network(str(each)):
            yield Cause.invalid(
                f"{path}.loadBalancerSourceRanges[{number}]", f'"{each}": expected a network such as 10.0.0.0/8'
            )


def _port_causes(spec: Json) -> Iterator[Cause]:
    """All programs of a Pod share its ports, and so do the ports of the Service."""
    taken = {10257: names.KUBE_CONTROLLER_MANAGER, 10259: names.KUBE_SCHEDULER}
    served = {(spec.get("networkProfile") or {}).get("port") or 6443: names.API_PORT_NAME}
    for port in served:
        if port in taken:
            yield Cause.invalid("spec.networkProfile.port", f"{port}: {taken[port]} listens there in the same Pod")
    tunnel = (spec.get("addons") or {}).get("konnectivity")
    if isinstance(tunnel, dict):
        taken |= {8133: names.KONNECTIVITY_SERVER, 8134: names.KONNECTIVITY_SERVER, **served}
        agents = (tunnel.get("server") or {}).get("port") or 8132
        if agents in taken:
            at = "spec.addons.konnectivity.server.port"
            yield Cause.invalid(at, f"{agents}: {taken[agents]} listens there in the same Pod")
        served[agents] = names.KONNECTIVITY_PORT_NAME
    yield from _additional_causes(spec, served)


def _additional_causes(spec: Json, served: dict[int, str]) -> Iterator[Cause]:
    for number, each in enumerate(((spec.get("controlPlane") or {}).get("service") or {}).get("additionalPorts") or ()):
        at = f"spec.controlPlane.service.additionalPorts[{number}]"
        if each.get("port") in served and (each.get("protocol") or "TCP") == "TCP":
            yield Cause("FieldValueDuplicate", f"Duplicate value: {each['port']}", f"{at}.port")
        if each.get("name") in served.values():
            yield Cause("FieldValueDuplicate", f'Duplicate value: "{each["name"]}"', f"{at}.name")


def _override_causes(overrides: list[Json]) -> Iterator[Cause]:
    seen: set[str] = set()
    for number, each in enumerate(overrides):
        resource, at = str(each.get("resource") or ""), f"spec.dataStoreOverrides[{number}]"
        if resource.count("/") != 1 or not resource.rpartition("/")[2]:
            yield Cause.invalid(f"{at}.resource", f'"{resource}": expected GROUP/RESOURCE, for example /events')
        elif resource in seen:
            yield Cause("FieldValueDuplicate", f'Duplicate value: "{resource}"', f"{at}.resource")
        if not each.get("dataStore"):
            yield Cause("FieldValueRequired", "Required value", f"{at}.dataStore")
        seen.add(resource)


def _schema_causes(spec: Json) -> Iterator[Cause]:
    for field in ("dataStoreSchema", "dataStoreUsername"):
        value = str(spec.get(field) or "")
        if value and not is_name(value):
            text = f'"{value}": letters, digits, _, - and . alone, at most 63'
            yield Cause.invalid(f"spec.{field}", text)
        elif value in RESERVED:
            yield Cause.invalid(f"spec.{field}", f'"{value}": reserved: choose another name')


def _fixed_causes(spec: Json, old: Json) -> Iterator[Cause]:
    """What nodes, Services and data that exist were made with. A field that is left out has its default."""
    before, status = old.get("spec") or {}, old.get("status") or {}
    setup = (status.get("storage") or {}).get("setup") or {}
    for field, used in (("dataStoreSchema", setup.get("schema")), ("dataStoreUsername", setup.get("user"))):
        if used and spec.get(field) and spec[field] != used:
            text = f'Forbidden: immutable: the data is in "{used}"'
            yield Cause("FieldValueForbidden", text, f"spec.{field}")
    installed = ((status.get("kubernetesResources") or {}).get("version") or {}).get("version")
    network, was = spec.get("networkProfile") or {}, before.get("networkProfile") or {}
    for field, default in _NETWORK_DEFAULTS.items():
        held = was.get(field) or default
        if installed and (network.get(field) or default) != held:
            text = f'Forbidden: immutable: the cluster was created with "{held}"'
            yield Cause("FieldValueForbidden", text, f"spec.networkProfile.{field}")


def warn_tenant(obj: Json, old: Json | None) -> list[str]:
    """What is allowed, and has consequences that are easily overlooked."""
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    found = _stored_only(spec, before)
    if old is None or not (old.get("status") or {}).get("controlPlaneEndpoint"):
        return found
    for path, default in _ENDPOINT_FIELDS.items():
        if _at(spec, path, default) != _at(before, path, default):
            found.append(f"spec.{path}: nodes that have joined keep the endpoint that they know")
    return found


def warn_control_plane(obj: Json, old: Json | None) -> list[str]:
    return _stored_only(obj.get("spec") or {}, (old or {}).get("spec") or {})


def warn_template(obj: Json, old: Json | None) -> list[str]:
    found = _stored_only(_template_spec(obj), _template_spec(old or {}))
    return [each.replace("spec.", "spec.template.spec.", 1) for each in found]


def _stored_only(spec: Json, before: Json) -> list[str]:
    """Fields that are kept for other tools: said when they are written, not when somebody wonders."""
    found = []
    for path, what in _NOT_READ.items():
        if _at(spec, path, None) is not None and _at(before, path, None) is None:
            found.append(f"spec.{path}: stored, and not acted on: {what}")
    return found


def _at(spec: Json, path: str, default: Any) -> Any:
    found: Any = spec
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return default if found is None else found


def _parent_causes(parents: list[Json], path: str) -> Iterator[Cause]:
    for number, each in enumerate(parents):
        for field in ("port", "sectionName"):
            if each.get(field) is not None:
                yield Cause.forbidden(f"{path}[{number}].{field}", "set by the controller")


def _bootstrap_causes(given: Any, path: str) -> Iterator[Cause]:
    if not isinstance(given, dict):
        return
    if given.get("provider") != "talos":
        yield Cause("FieldValueNotSupported", 'Unsupported value: supported values: "talos"', f"{path}.provider")
    for number, each in enumerate(given.get("allowedSubnets") or ()):
        if not _is_network(str(each)):
            yield Cause.invalid(f"{path}.allowedSubnets[{number}]", f'"{each}": expected a network such as 10.0.0.0/8')


# -- DataStore ---------------------------------------------------------------------------------------------------------


def validate_datastore(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if old is not None and (old.get("spec") or {}) == spec:
        return []
    causes = []
    for number, each in enumerate(spec.get("endpoints") or ()):
        try:
            split_endpoint(str(each))
        except ValueError as error:
            causes.append(Cause.invalid(f"spec.endpoints[{number}]", str(error)))
    return causes


# -- control planes of Cluster API -------------------------------------------------------------------------------------


def default_control_plane(obj: Json, old: Json | None) -> None:
    """With or without v: written with it, as everywhere in Cluster API."""
    del old
    spec = obj.setdefault("spec", {})
    version = str(spec.get("version") or "")
    if version and not version.startswith("v") and versions.is_valid(f"v{version}"):
        spec["version"] = f"v{version}"


def validate_control_plane(obj: Json, old: Json | None) -> list[Cause]:
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    if old is not None and before == spec:
        return []
    causes = list(_name_causes(str((obj.get("metadata") or {}).get("name") or ""))) if old is None else []
    causes += _version_causes(spec, before.get("version"), "spec.version")
    causes += _plugin_causes(spec.get("admissionControllers"), spec, "spec")
    causes += _fields_causes(spec, "spec")
    schema = before.get("dataStoreSchema")
    if schema and spec.get("dataStoreSchema") != schema:
        causes.append(Cause.forbidden("spec.dataStoreSchema", "immutable"))
    return causes


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    causes = list(_fields_causes(spec, "spec.template.spec"))
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if old is not None and _template_spec(old) != spec and _TOPOLOGY_DRY_RUN not in annotations:
        causes.append(Cause.forbidden("spec.template.spec", immutable(obj)))
    return causes


def _template_spec(obj: Json) -> Json:
    return ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}


def _fields_causes(spec: Json, path: str) -> Iterator[Cause]:
    network = spec.get("network") or {}
    balancer = network.get("loadBalancerConfig") or {}
    at = f"{path}.network"
    yield from _list_causes({"certSANs": network.get("certSANs"), "dnsServiceIPs": network.get("dnsServiceIPs")}, at)
    yield from _list_causes(
        {"loadBalancerSourceRanges": balancer.get("loadBalancerSourceRanges")}, f"{at}.loadBalancerConfig"
    )
    yield from _parent_causes((network.get("gateway") or {}).get("parentRefs") or [], f"{at}.gateway.parentRefs")
    yield from _bootstrap_causes((spec.get("addons") or {}).get("workerBootstrap"), f"{path}.addons.workerBootstrap")


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return False
    return "/" in text


def _inside(address: str, network: str) -> bool:
    found, wanted = ipaddress.ip_address(address), ipaddress.ip_network(network.strip(), strict=False)
    return found.version == wanted.version and found in wanted
