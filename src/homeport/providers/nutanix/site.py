"""Where a platform's machines go on Nutanix: its part of the platform's object and the Secret, in one spelling."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from homeport.capi.platform import Fault, Origin, Site
from homeport.infra.error import Misconfigured
from homeport.infra.platform.site import Part, aliased, raise_faults, read_bool
from homeport.providers.nutanix.client import Credentials
from homeport.providers.nutanix.credential import DEFAULT_PORT, read_credentials
from homeport.providers.nutanix.spelling import identifier

Json = dict[str, Any]

TYPE = "nutanix"
_USERS = ("username", "NUTANIX_USER", "NUTANIX_USERNAME", "user")
_PASSWORDS = ("password", "NUTANIX_PASSWORD")
_API_KEYS = ("apiKey", "NUTANIX_API_KEY")
_BUNDLES = ("ca.pem", "ca.crt", "ca-bundle.crt", "NUTANIX_ADDITIONAL_TRUST_BUNDLE")
# What a machine needs; the others may be left out.
_REQUIRED = {"cluster": "cluster (Prism Element)", "subnet": "subnet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NutanixSite(Site):
    """`cluster`, `subnets`, ... are identifiers as NutanixMachines have them."""

    address: str
    port: int
    insecure: bool = False
    bundle: str = field(default="", repr=False)  # PEM
    credentials: Credentials
    cluster: Json
    subnets: Sequence[Json]
    image_ref: Json | None = None
    container: Json | None = None
    project: Json | None = None
    categories: Sequence[Json] = ()
    boot_type: str = ""


def faults(part: Mapping[str, Any]) -> Sequence[Fault]:
    """What is wrong whatever the Secret has."""
    read = Part(part)
    _endpoint(read)
    _references(read)
    return read.faults


def read_site(part: Mapping[str, Any], secret: Mapping[str, str], origin: Origin) -> NutanixSite:
    """Fields of the part win over keys of the Secret. Raises Misconfigured."""
    read = Part(part)
    address, port = _endpoint(read)
    found = _references(read)
    raise_faults(read.faults, origin)
    if not address:
        address, port = _endpoint_of_secret(secret, origin, port)
    insecure = read.one("prismCentral.insecure", "insecure")[1]
    if insecure is None:
        key = f"{origin.secret}, key NUTANIX_INSECURE"
        insecure = read_bool(secret.get("NUTANIX_INSECURE", ""), key)
    image = found.get("image")
    port = port or _port(secret.get("NUTANIX_PORT", ""), f"{origin.secret}, key NUTANIX_PORT") or DEFAULT_PORT
    return NutanixSite(
        type=TYPE,
        server=f"Prism Central {address}:{port}",
        origin=origin,
        image=str(image.get("uuid") or image.get("name") or "") if image else "",
        address=address,
        port=port,
        insecure=bool(insecure),
        bundle=_bundle(read, secret, origin),
        credentials=_credentials(secret, origin),
        cluster=found["cluster"],
        subnets=found["subnets"],
        image_ref=image,
        container=found.get("storageContainer"),
        project=found.get("project"),
        categories=tuple(part.get("categories") or ()),
        boot_type=str(part.get("bootType") or ""),
    )


# -- where Prism Central is ------------------------------------------------------------------------------------------


def _endpoint(read: Part) -> tuple[str, int]:
    """Host and port; '' and 0 where the part does not say."""
    hosts: dict[str, tuple[str, int]] = {}
    for path in ("prismCentral.address", "prismCentral.endpoint", "endpoint"):
        text = read.get(path)
        if text in (None, ""):
            continue
        try:
            hosts[path] = parse_address(str(text))
        except Misconfigured as error:
            read.fault(path, error.message)
    path, port = read.one("prismCentral.port", "port")
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536):
        read.fault(path, f"must be a number between 1 and 65535, not {port!r}")
        port = 0
    if len({host for host, _ in hosts.values()}) > 1:
        first, other, *_ = hosts
        read.fault(other, f"contradicts {first}: remove one of them")
    if not hosts:
        return "", int(port or 0)
    host, own = next(iter(hosts.values()))
    return host, int(port or own)


def parse_address(text: str) -> tuple[str, int]:
    """A host, host:port or https:// URL. Port 0: it names none. Raises Misconfigured."""
    address = text.strip().rstrip("/")
    if address.startswith("http://"):
        raise Misconfigured(f"{text!r}: Prism Central serves HTTPS only: write https://{address[7:]}")
    bare = address.count(":") > 1 and not address.startswith(("[", "https:"))  # an IPv6 address
    try:
        parts = urlsplit(address if "://" in address else f"https://{f'[{address}]' if bare else address}")
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port = "", 0
    if not host or parts.scheme != "https" or parts.path or parts.username or " " in host:
        raise Misconfigured(f"{text!r} is not a valid address: expected for example prism-central.example.com")
    return host, port


def _endpoint_of_secret(secret: Mapping[str, str], origin: Origin, port: int) -> tuple[str, int]:
    text = secret.get("NUTANIX_ENDPOINT", "")
    if not text.strip():
        raise Misconfigured(
            f"{origin.part}.prismCentral.address: the address of Prism Central is required, for example "
            f"prism-central.example.com; {origin.secret} has no key NUTANIX_ENDPOINT either"
        )
    try:
        host, own = parse_address(text)
    except Misconfigured as error:
        raise Misconfigured(f"{origin.secret}, key NUTANIX_ENDPOINT: {error.message}") from None
    return host, port or own


def _port(text: str, where: str) -> int:
    if not text.strip():
        return 0
    if not text.strip().isdigit():
        raise Misconfigured(f"{where}: must be a number")
    return int(text)


# -- what machines are made of ---------------------------------------------------------------------------------------


def _references(read: Part) -> Json:
    found: Json = {}
    for name in ("cluster", "image", "storageContainer", "project"):
        made = _identifier(read, name)
        if made is not None:
            found[name] = made
    listed = read.get("subnets")
    if isinstance(listed, list) and listed:
        found["subnets"] = [_checked(read, f"subnets[{number}]", each) for number, each in enumerate(listed)]
        if read.one("subnet", "subnetUUID")[1] is not None:
            read.fault("subnets", "contradicts subnet: remove one of them")
    else:
        one = _identifier(read, "subnet")
        found["subnets"] = [one] if one is not None else []
    for name, what in _REQUIRED.items():
        if not (found.get(name) or (name == "subnet" and found["subnets"])) and not any(
            each.field.startswith(name) for each in read.faults
        ):
            read.fault(name, f"name the {what} that machines use, with {name}.name or {name}.uuid")
    return found


def _identifier(read: Part, name: str) -> Json | None:
    """{name|uuid}, a bare string, or upstream's field with a UUID. A UUID wins over the name beside it."""
    plain, value = read.get(f"{name}UUID"), read.get(name)
    path = name if value not in (None, "", {}) else f"{name}UUID"
    made = _checked(read, path, value if path == name else plain and {"uuid": plain})
    if path == name and plain and made is not None and made.get("uuid") not in (None, plain):
        read.fault(f"{name}UUID", f"contradicts {name}.uuid: remove one of them")
    return made


def _checked(read: Part, path: str, value: Any) -> Json | None:
    if value in (None, "", {}):
        return None
    made = identifier(value)
    if not isinstance(made, dict) or made.get("type") not in ("name", "uuid"):
        read.fault(path, "set name or uuid")
        return None
    if made["type"] == "uuid":
        try:
            uuid.UUID(str(made["uuid"]))
        except ValueError:
            field_ = path if path.endswith("UUID") else f"{path}.uuid"
            read.fault(field_, f"{made['uuid']!r} is not a valid UUID: correct it, or use a name")
            return None
    return {"type": made["type"], made["type"]: str(made[made["type"]])}


# -- the Secret ------------------------------------------------------------------------------------------------------


def _credentials(secret: Mapping[str, str], origin: Origin) -> Credentials:
    if secret.get("credentials", "").strip():
        return read_credentials(secret, origin.secret)
    api_key = aliased(secret, _API_KEYS, origin)
    if api_key:
        return Credentials(api_key=api_key, origin=origin.secret)
    user, password = aliased(secret, _USERS, origin), aliased(secret, _PASSWORDS, origin)
    if user and password:
        return Credentials(user, password, origin=origin.secret)
    lacking = [name for name, value in (("NUTANIX_USER", user), ("NUTANIX_PASSWORD", password)) if not value]
    raise Misconfigured(f"{origin.secret} has no key {' and no key '.join(lacking)}: add the user and password")


def _bundle(read: Part, secret: Mapping[str, str], origin: Origin) -> str:
    """PEM. Of the part, otherwise of the Secret."""
    value = read.one("prismCentral.additionalTrustBundle", "additionalTrustBundle", "caBundle")[1]
    if isinstance(value, Mapping):
        value = value.get("data")
    return str(value) if value else aliased(secret, _BUNDLES, origin)
