"""Network data: static addresses of a VM, in the form that its data source reads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Any

import orjson

from homeport.infra.protocol import StaticAddress
from homeport.machinery import yaml


@dataclass(frozen=True, slots=True)
class Card:
    """A network card. Without an address it uses DHCP. The MAC address identifies the card."""

    name: str
    mac: str
    address: StaticAddress | None = None


def mac_of(uid: str, index: int) -> str:
    """Locally administered, and the same at every attempt."""
    digest = hashlib.sha256(f"{uid} {index}".encode()).digest()
    return ":".join(f"{each:02x}" for each in (0x02, *digest[:5]))


def render_no_cloud(cards: Sequence[Card], nameservers: Sequence[str]) -> str:
    """Version 2 of cloud-init's network configuration."""
    ethernets: dict[str, Any] = {}
    for card in cards:
        made: dict[str, Any] = {"match": {"macaddress": card.mac}}
        if card.address is None:
            made["dhcp4"] = True
        else:
            made["addresses"] = [f"{card.address.address}/{card.address.prefix}"]
            if card.address.gateway:
                made["routes"] = [{"to": _everywhere(card.address), "via": card.address.gateway}]
            if nameservers:
                made["nameservers"] = {"addresses": list(nameservers)}
        ethernets[card.name] = made
    return yaml.dump({"version": 2, "ethernets": ethernets})


def render_config_drive(cards: Sequence[Card], nameservers: Sequence[str]) -> str:
    """network_data.json of OpenStack."""
    links = [{"id": card.name, "type": "phy", "ethernet_mac_address": card.mac} for card in cards]
    networks = [_openstack(card) for card in cards]
    services = [{"type": "dns", "address": each} for each in nameservers]
    return orjson.dumps({"links": links, "networks": networks, "services": services}).decode()


def _openstack(card: Card) -> dict[str, Any]:
    if card.address is None:
        return {"id": card.name, "type": "ipv4_dhcp", "link": card.name}
    version = ip_interface(card.address.address).version
    netmask = str(ip_interface(f"{card.address.address}/{card.address.prefix}").netmask)
    made: dict[str, Any] = {
        "id": card.name,
        "type": f"ipv{version}",
        "link": card.name,
        "ip_address": card.address.address,
        "netmask": netmask,
    }
    if card.address.gateway:
        nowhere = "0.0.0.0" if version == 4 else "::"  # noqa: S104 - a route, not a socket
        made["routes"] = [{"network": nowhere, "netmask": nowhere, "gateway": card.address.gateway}]
    return made


def _everywhere(address: StaticAddress) -> str:
    return "0.0.0.0/0" if ip_interface(address.address).version == 4 else "::/0"
