"""Whether a kubelet may have the serving certificate that it asks for. Pure.

With that certificate API servers trust whoever answers at a name or address. A kubelet gets one for what Cluster API
knows of its Machine, and for nothing that the kubelet alone says.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from homeport.api.cluster.v1beta2 import Machine
from homeport.apiserver.auth.pem import parse_request

SIGNER = "kubernetes.io/kubelet-serving"
_NODE = "system:node:"
_NODES = "system:nodes"
_USAGES = {"digital signature", "key encipherment", "server auth"}
_ADDRESSES = ("InternalIP", "ExternalIP")


def is_open(request: Mapping[str, Any]) -> bool:
    """Of a kubelet that wants to serve, and nobody has decided yet."""
    verdicts = {each.get("type") for each in (request.get("status") or {}).get("conditions") or ()}
    asked = (request.get("spec") or {}).get("signerName") == SIGNER
    return asked and not verdicts & {"Approved", "Denied", "Failed"}


def node_of(request: Mapping[str, Any]) -> str:
    """The node that asks: the API server wrote who it was. '': it was no node."""
    spec = request.get("spec") or {}
    user = str(spec.get("username") or "")
    return user.removeprefix(_NODE) if user.startswith(_NODE) and _NODES in (spec.get("groups") or ()) else ""


def refuse(request: Mapping[str, Any], machines: Iterable[Machine], subnets: Sequence[str] = ()) -> str:
    """Why a request is not approved; '' if it can be. `machines`: of the cluster. `subnets`: empty: all."""
    spec, node = request.get("spec") or {}, node_of(request)
    if not node:
        return f"user {spec.get('username')!r} is not a node"
    usages = set(spec.get("usages") or ())
    if "server auth" not in usages or usages - _USAGES:
        return f"the usages are {', '.join(sorted(usages))}"
    try:
        csr = parse_request(base64.b64decode(str(spec.get("request") or ""), validate=True))
    except (ValueError, binascii.Error) as error:
        return f"the request can't be read: {error}"
    subject = {each.oid: str(each.value) for each in csr.subject}
    if len(list(csr.subject)) != 2 or subject != {
        NameOID.COMMON_NAME: f"{_NODE}{node}",
        NameOID.ORGANIZATION_NAME: _NODES,
    }:
        return f"the subject is {csr.subject.rfc4514_string()}, not that of node {node}"
    machine = next((each for each in machines if each.status.node_ref and each.status.node_ref.name == node), None)
    if machine is None:
        return f"node {node} is not a Machine of the cluster"
    return _names_objection(csr, node, machine, subnets)


def _names_objection(csr: x509.CertificateSigningRequest, node: str, machine: Machine, subnets: Sequence[str]) -> str:
    try:
        asked = list(csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return "it names no host and no address"
    known = machine.status.addresses
    names = {node} | {each.address for each in known if each.type not in _ADDRESSES}
    addresses = {each.address for each in known if each.type in _ADDRESSES}
    networks = [ipaddress.ip_network(each, strict=False) for each in subnets]
    for each in asked:
        if isinstance(each, x509.DNSName):
            if each.value not in names:
                return f"Machine {machine.metadata.name} has no name {each.value}"
        elif not isinstance(each, x509.IPAddress):
            return "it names something else than hosts and addresses"
        elif str(each.value) not in addresses:
            return f"Machine {machine.metadata.name} has no address {each.value}"
        elif networks and not any(each.value in network for network in networks):
            return f"{each.value} is not in allowedSubnets"
    return ""
