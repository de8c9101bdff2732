"""Where a platform's machines go on Harvester: its part of the platform's object and the Secret, in one spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.capi.platform import Fault, Origin, Site
from homeport.capi.remote import kubeconfig
from homeport.client.config import ConfigError
from homeport.infra.error import Misconfigured
from homeport.infra.platform.site import Part, raise_faults
from homeport.machinery import yaml

TYPE = "harvester"
KEY = "kubeconfig"
DEFAULT_NAMESPACE = "default"
_NAME = re.compile(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9._ ]*[A-Za-z0-9])?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvesterSite(Site):
    """`networks` and `image` are `namespace/name`."""

    kubeconfig: bytes = field(repr=False)
    namespace: str  # of VMs
    networks: Sequence[str]
    storage_class: str = ""  # of additional disks
    keys: Sequence[str] = ()  # names of KeyPairs


def faults(part: Mapping[str, Any]) -> Sequence[Fault]:
    """What is wrong whatever the Secret has."""
    read = Part(part)
    _networks(read)
    _named(read, "image", "imageName", "image")
    return read.faults


def read_site(part: Mapping[str, Any], secret: Mapping[str, str], origin: Origin) -> HarvesterSite:
    """Raises Misconfigured. Messages never show what is in the Secret."""
    read = Part(part)
    networks, image = _networks(read), _named(read, "image", "imageName", "image")
    raise_faults(read.faults, origin)
    content = _with_server(_content(secret, origin), read.text("endpoint"), origin)
    namespace = read.text("namespace") or secret.get("namespace", "").strip() or DEFAULT_NAMESPACE
    try:
        config = kubeconfig.parse(content, where=f"{origin.secret}, key {KEY}")
    except ConfigError as error:
        raise Misconfigured(str(error)) from None
    keys = part.get("sshKeys") or part.get("keyPairs") or ([part["sshKeyName"]] if part.get("sshKeyName") else [])
    return HarvesterSite(
        type=TYPE,
        server=config.server,
        origin=origin,
        image=_qualified(image, namespace),
        kubeconfig=content,
        namespace=namespace,
        networks=[_qualified(each, namespace) for each in networks],
        storage_class=read.text("storageClassName"),
        keys=[_qualified(str(each), namespace) for each in keys],
    )


def _networks(read: Part) -> list[str]:
    listed = read.get("networkNames") or read.get("networks")
    if isinstance(listed, list) and listed:
        return [str(each) for each in listed]
    name = _named(read, "network", "networkName", "network")
    if not name and not read.faults:
        read.fault("networkName", "name the VM network of the machines, for example default/workloads")
    return [name] if name else []


def _named(read: Part, what: str, *paths: str) -> str:
    text = read.text(*paths)
    if text and not _NAME.match(text):
        read.fault(
            paths[0], f"{text!r} is not the name of a {what}: expected namespace/name, for example default/{what}"
        )
        return ""
    return text


def _qualified(name: str, namespace: str) -> str:
    return name if "/" in name or not name else f"{namespace}/{name}"


def _content(secret: Mapping[str, str], origin: Origin) -> bytes:
    content = secret.get(KEY, "")
    if not content.strip():
        there = ", ".join(sorted(secret)) or "none"
        raise Misconfigured(
            f"{origin.secret} has no key {KEY} (its keys: {there}): add the kubeconfig of the Harvester cluster, or "
            "name its key in credentialsRef.key"
        )
    return content.encode()


def _with_server(content: bytes, endpoint: str, origin: Origin) -> bytes:
    """With the address of the ProviderConfig in place of the kubeconfig's own, which may be an internal one."""
    if not endpoint:
        return content
    try:
        found = yaml.load(content)
        for each in found["clusters"]:
            each["cluster"]["server"] = endpoint if "://" in endpoint else f"https://{endpoint}"
    except (yaml.YamlError, LookupError, TypeError):
        raise Misconfigured(f"{origin.secret}, key {KEY}: is not a valid kubeconfig") from None
    return yaml.dump(found).encode()
