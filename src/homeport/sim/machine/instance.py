"""Instance data: what a machine knows about itself before it has read its user data, and what templates may use."""

from __future__ import annotations

from typing import Any

from homeport.sim.machine import yaml

Json = dict[str, Any]


def parse_meta_data(raw: bytes) -> Json:
    """Parses YAML or JSON; anything else is ignored."""
    try:
        found = yaml.load(raw.decode("utf-8", "replace")) if raw.strip() else {}
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def local_hostname(meta: Json, fallback: str) -> str:
    for key in ("local-hostname", "local_hostname", "hostname", "name"):
        if meta.get(key):
            return str(meta[key])
    return fallback


def instance_data(meta: Json, *, name: str, instance_id: str, platform: str, addresses: tuple[str, ...] = ()) -> Json:
    """As cloud-init lays it out: `v1` (whose names also stand alone) and `ds.meta_data`."""
    hostname = local_hostname(meta, name)
    known = {"instance-id": instance_id, "local-hostname": hostname, "hostname": hostname, **meta}
    if addresses:
        known.setdefault("local-ipv4", addresses[0])
    standard = {
        "cloud_name": platform,
        "platform": platform,
        "instance_id": str(known["instance-id"]),
        "local_hostname": hostname.partition(".")[0],
        "region": str(meta.get("region") or ""),
        "availability_zone": str(meta.get("availability-zone") or meta.get("availability_zone") or ""),
    }
    return {**standard, "v1": standard, "ds": {"meta_data": _aliased(known)}, "sys_info": {}, "vendordata": {}}


def _aliased(values: Json) -> Json:
    """Names with hyphens can't be written in a template: each has a twin with underscores."""
    found: Json = {}
    for key, value in values.items():
        inner = _aliased(value) if isinstance(value, dict) else value
        found[key] = inner
        found.setdefault(str(key).replace("-", "_"), inner)
    return found
