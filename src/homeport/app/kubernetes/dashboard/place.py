"""Where the dashboard of an installation is, and under which names it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.app.kubernetes.layout import Placement
from homeport.client.protocol import Key
from homeport.runtime.webhook.authority import SECRET
from homeport.runtime.webhook.configuration import Service

# A namespace of its own: who may forward a port there reaches nothing else.
NAME = NAMESPACE = "homeport-dashboard"
PLACE = Placement(NAMESPACE, NAME, (NAMESPACE, NAME))
KEY = Key(NAMESPACE, NAME)  # of the ConfigMap with the host names, and of the Secret with the certificate
AUTHORITY = Key(NAMESPACE, f"{NAME}-ca")  # of the Secret with the CA, and of the ConfigMap with its certificate
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
ISSUED = ((SECRET, KEY), (SECRET, AUTHORITY), (CONFIG_MAP, AUTHORITY))  # what the controllers make
PORT = 8443  # in the Pod; the Service listens on 443
PORT_NAME = "https"
HOSTS = "hosts"  # in the ConfigMap, with spaces between
USER_ROLE = f"{NAME}-user"
SERVER_NAME = Service(NAMESPACE, NAME).hosts[0]


def hosts_of(config_map: Mapping[str, Any]) -> list[str]:
    """`NAME` or `NAME:PORT`, as users reach it from outside; the first is the one that links have."""
    return str((config_map.get("data") or {}).get(HOSTS, "")).split()


def names_of(hosts: list[str]) -> list[str]:
    """What its certificate must be good for."""
    outside = [host if host.count(":") > 1 else host.partition(":")[0] for host in hosts]
    return list(dict.fromkeys([*Service(NAMESPACE, NAME).hosts, *outside]))
