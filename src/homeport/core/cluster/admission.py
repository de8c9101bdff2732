"""What a Cluster may say, and what is filled in when it does not."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi import name
from homeport.capi.family import correction, is_host
from homeport.capi.object.paused import annotations_of
from homeport.client.errors import Cause
from homeport.client.protocol import Client
from homeport.core.topology.admission import TopologyAdmission
from homeport.machinery.schema.name import label_value
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_REFERENCES = ("infrastructureRef", "controlPlaneRef")


def register(hooks: Hooks, client: Client) -> None:
    """`client` looks up what a topology is made from."""
    topology = TopologyAdmission(client)
    hooks.add(Cluster, default=default, validate=validate)
    hooks.add(Cluster, default=topology.default, validate=topology.validate, warn=topology.warn)


def default(cluster: Json, old: Json | None) -> None:
    metadata = cluster["metadata"]
    if old is None:
        finalizers = metadata["finalizers"] = metadata.get("finalizers") or []
        if name.CLUSTER_FINALIZER not in finalizers:
            finalizers.append(name.CLUSTER_FINALIZER)


def validate(cluster: Json, old: Json | None) -> list[Cause]:
    spec = cluster.get("spec") or {}
    was = (old or {}).get("spec") or {}
    return [
        *_name(cluster["metadata"].get("name", "")),
        *_references(cluster, spec, was),
        *_blocks(spec.get("clusterNetwork") or {}),
        *_overlaps(spec, was),
        *_host(spec, was),
    ]


def _name(text: str) -> Iterator[Cause]:
    for wrong in label_value(text):
        yield Cause.invalid("metadata.name", f'"{text}": the name is used as a label value of all its objects: {wrong}')


def _references(cluster: Json, spec: Json, was: Json) -> Iterator[Cause]:
    """A Cluster that something outside of Cluster API makes has none of them, and says so."""
    external = name.MANAGED_BY in annotations_of(cluster)
    if not external and not any(spec.get(part) for part in (*_REFERENCES, "topology")):
        yield Cause.forbidden("spec", "set at least one of infrastructureRef, controlPlaneRef and topology")
    for part in _REFERENCES:
        if was.get(part) and not spec.get(part):
            yield Cause.forbidden(f"spec.{part}", "can't be removed once it is set")


def _blocks(network: Json) -> Iterator[Cause]:
    for part in ("pods", "services"):
        for i, block in enumerate((network.get(part) or {}).get("cidrBlocks") or ()):
            try:
                ipaddress.ip_interface(block)
                good = "/" in str(block)
            except ValueError:
                good = False
            if not good:
                yield Cause.invalid(
                    f"spec.clusterNetwork.{part}.cidrBlocks[{i}]",
                    f'"{block}": must be a network, for example 192.168.0.0/16 or fd00::/108',
                )


def _overlaps(spec: Json, was: Json) -> Iterator[Cause]:
    """An address must belong to a Pod, to a Service or to a machine, or it reaches the wrong one of them."""
    fields = ("clusterNetwork", "controlPlaneEndpoint")
    if all(spec.get(field) == was.get(field) for field in fields):
        return  # what is there already is reported elsewhere, and must not keep users from changing the rest
    found = list(_networks(spec.get("clusterNetwork") or {}))
    for i, (field, network) in enumerate(found):
        for other, second in found[:i]:
            if network.version == second.version and network.overlaps(second):
                yield Cause.invalid(field, f'"{network}": overlaps with {second} of {other}')
    host = _address((spec.get("controlPlaneEndpoint") or {}).get("host"))
    for field, network in found if host is not None else ():
        if host in network:
            text = (
                f'Invalid value: "{host}": is in {network} of {field}: choose an address in the network of the machines'
            )
            yield Cause("FieldValueInvalid", text, "spec.controlPlaneEndpoint.host")


def _networks(network: Json) -> Iterator[tuple[str, IPv4Network | IPv6Network]]:
    for part in ("pods", "services"):
        for i, block in enumerate((network.get(part) or {}).get("cidrBlocks") or ()):
            with contextlib.suppress(ValueError):
                yield f"spec.clusterNetwork.{part}.cidrBlocks[{i}]", ipaddress.ip_network(block, strict=False)


def _address(host: Any) -> IPv4Address | IPv6Address | None:
    try:
        return ipaddress.ip_address(str(host or ""))
    except ValueError:
        return None


def _host(spec: Json, was: Json) -> Iterator[Cause]:
    endpoint = spec.get("controlPlaneEndpoint") or {}
    host = str(endpoint.get("host") or "")
    if host and endpoint != was.get("controlPlaneEndpoint") and not is_host(host):
        text = f'Invalid value: "{host}": is not a valid IP address or host name: {correction(host)}'
        yield Cause("FieldValueInvalid", text, "spec.controlPlaneEndpoint.host")
