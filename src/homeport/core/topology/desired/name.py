"""Names of what a topology makes.

They look as if their ending were random, and follow from the Cluster's UID: a controller that was killed before it
could write down what it made finds it again, and makes nothing twice. Another Cluster of the same name gets others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.object import naming

DEPLOYMENT_TEMPLATE = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # as of random names
_CONTENT = 8  # identifies a template for as long as it exists: no two may have the same


def suffix(*parts: str, length: int = naming.SUFFIX) -> str:
    """Always the same for the same parts."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:16])
    made = ""
    for _ in range(length):
        number, index = divmod(number, len(_ALPHABET))
        made += _ALPHABET[index]
    return made


def infrastructure(cluster: Cluster, template: str = "") -> str:
    return _rendered(cluster, template or naming.TOPOLOGY_TEMPLATE, "infrastructure")


def control_plane(cluster: Cluster, template: str = "") -> str:
    return _rendered(cluster, template or naming.TOPOLOGY_TEMPLATE, "control plane")


def deployment(cluster: Cluster, topology: str, template: str = "") -> str:
    values = {"machineDeployment.topologyName": topology}
    return _rendered(cluster, template or DEPLOYMENT_TEMPLATE, f"machine deployment {topology}", values)


def template(cluster: Cluster, topology: str = "", spec: Mapping[str, Any] | None = None) -> str:
    """Of a copy of a template of the class; `topology` '': for the control plane. With `spec`: of one that comes in the
    place of another, which is named by what is in it."""
    base = f"{cluster.metadata.name}-{topology}" if topology else cluster.metadata.name
    role = f"templates of {topology}"
    if spec is None:
        ending = suffix(cluster.metadata.uid, role)
    else:
        content = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS).decode()
        ending = suffix(cluster.metadata.uid, role, content, length=_CONTENT)
    return f"{base[: naming.MAX_NAME - len(ending) - 1].rstrip('-.')}-{ending}"


def _rendered(cluster: Cluster, text: str, role: str, values: Mapping[str, str] | None = None) -> str:
    known = {"cluster.name": cluster.metadata.name, **(values or {})}
    return naming.render(text, known, suffix=suffix(cluster.metadata.uid, role))
