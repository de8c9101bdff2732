"""Container Linux Configs, the YAML that Flatcar's users write, into Ignition 2.3 JSON.

Everything that has a counterpart in Ignition itself. The sections that generate units for one product (etcd, flannel,
docker, update, locksmith) are refused by name rather than dropped: a unit or file under `systemd` or `storage` says
the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_from_bytes

from homeport.machinery.yaml import YamlError, load

Json = dict[str, Any]
Shape = Mapping[str, "Field"]
Field = tuple[str, Any]  # Ignition's name; and None: as it is, a Shape, [Shape] for a list of them, or a function

_GENERATED = ("etcd", "flannel", "docker", "update", "locksmith")
_MEBIBYTE = 1024 * 1024
_SIZE = re.compile(r"([0-9]+)([KMGTPE]i?B|[KMGTPE]|B)")
_PARTITION_TYPES = {
    "raid_containing_root": "be9067b9-ea49-4f15-b4f6-f36f8c9e1818",
    "linux_filesystem_data": "0fc63daf-8483-4772-8e79-3d69d8477de4",
    "swap_partition": "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
    "raid_partition": "a19d880f-05fc-4d3b-a006-743f0f84911e",
}


class BadContainerLinuxConfig(ValueError):
    """Says where in the config and what to do."""


def transpile(text: str, *, strict: bool) -> Json:
    """`strict`: a key that means nothing is an error; otherwise it is left out. Raises BadContainerLinuxConfig."""
    try:
        given = load(text)
    except YamlError as broken:
        raise BadContainerLinuxConfig(f"additionalConfig is not YAML: {broken}") from broken
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadContainerLinuxConfig(f"additionalConfig is not a mapping but {type(given).__name__}")
    generated = [name for name in _GENERATED if given.get(name)]
    if generated:
        raise BadContainerLinuxConfig(
            f"additionalConfig: section {generated[0]!r} is not supported: use systemd.units for its units and "
            "storage.files for its files"
        )
    given.pop("version", None)
    return _Conversion(strict).mapping(given, _CONFIG, "additionalConfig")


def merge(first: object, second: object) -> Any:
    """As Ignition appends configs: lists one after the other, of anything else the second if it says something."""
    if isinstance(first, dict) and isinstance(second, dict):
        merged = dict(first)
        for name, value in second.items():
            merged[name] = merge(first[name], value) if name in first else value
        return merged
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    return second


class _Conversion:
    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def mapping(self, given: Any, shape: Shape, where: str) -> Json:
        if not isinstance(given, dict):
            raise BadContainerLinuxConfig(f"{where} is not a mapping but {type(given).__name__}")
        made: Json = {}
        for name, value in given.items():
            field = shape.get(name)
            if field is None:
                self._unknown(f"{where}.{name}", shape)
            elif value is not None:
                target, how = field
                made[target] = self._value(value, how, f"{where}.{name}")
        return made

    def _value(self, value: Any, how: Any, where: str) -> Any:
        if how is None:
            return value
        if isinstance(how, list):
            if not isinstance(value, list):
                raise BadContainerLinuxConfig(f"{where} is not a list but {type(value).__name__}")
            return [self._value(each, how[0], f"{where}[{i}]") for i, each in enumerate(value)]
        if isinstance(how, Mapping):
            return self.mapping(value, how, where)
        convert: Callable[[Any, str, _Conversion], Any] = how
        return convert(value, where, self)

    def _unknown(self, where: str, shape: Shape) -> None:
        if self._strict:
            raise BadContainerLinuxConfig(f"{where} is unknown: expected one of {', '.join(sorted(shape))}")


# -- values that look different in Ignition ------------------------------------------------------------------------


def _verification(given: Any, where: str, conversion: _Conversion) -> Json:
    found = (given or {}).get("hash") if isinstance(given, dict) else None
    if not isinstance(found, dict) or not found.get("function") or not found.get("sum"):
        return {}
    return {"hash": f"{found['function']}-{found['sum']}"}


def _size(given: Any, where: str, conversion: _Conversion) -> int:
    """`10GiB` in MiB. Units are powers of two, with and without the i."""
    found = _SIZE.fullmatch(str(given))
    if found is None:
        raise BadContainerLinuxConfig(f"{where}: {given!r} is not a valid size: expected for example 512MiB or 10GiB")
    unit = found.group(2)
    count = int(found.group(1)) * (1 if unit == "B" else 1024 ** ("KMGTPE".index(unit[0]) + 1))
    if count % _MEBIBYTE:
        raise BadContainerLinuxConfig(f"{where}: {given!r} is not a whole number of MiB")
    return count // _MEBIBYTE


def _type_guid(given: Any, where: str, conversion: _Conversion) -> str:
    return _PARTITION_TYPES.get(str(given), str(given))


def _contents(given: Any, where: str, conversion: _Conversion) -> Json:
    sources = [name for name in ("remote", "inline", "local") if isinstance(given, dict) and given.get(name)]
    if len(sources) > 1:
        raise BadContainerLinuxConfig(f"{where}: set only one of {', '.join(sources)}")
    if "local" in sources:
        raise BadContainerLinuxConfig(f"{where}.local: local files are not supported: use inline")
    if "inline" in sources:
        return {"source": "data:," + quote_from_bytes(str(given["inline"]).encode(), safe="")}
    remote = conversion.mapping(given.get("remote") or {}, _REMOTE, f"{where}.remote") if sources else {}
    return {"source": "data:,", **remote}


def _file(given: Any, where: str, conversion: _Conversion) -> Json:
    made = conversion.mapping(given, _FILE, where)
    return {"filesystem": "root", "mode": 0o644, "contents": {"source": "data:,"}, **made}


def _directory(given: Any, where: str, conversion: _Conversion) -> Json:
    return {"filesystem": "root", "mode": 0o755, **conversion.mapping(given, _DIRECTORY, where)}


def _link(given: Any, where: str, conversion: _Conversion) -> Json:
    return {"filesystem": "root", **conversion.mapping(given, _LINK, where)}


# -- the sections --------------------------------------------------------------------------------------------------


def _same(*names: str) -> dict[str, Field]:
    return {name: (name, None) for name in names}


_REFERENCE: Shape = {"source": ("source", None), "verification": ("verification", _verification)}
_REMOTE: Shape = {
    "url": ("source", None),
    "compression": ("compression", None),
    "verification": ("verification", _verification),
}
_OWNER: Shape = _same("id", "name")
_NODE: Shape = {**_same("filesystem", "path", "overwrite"), "user": ("user", _OWNER), "group": ("group", _OWNER)}
_DIRECTORY: Shape = {**_NODE, **_same("mode")}
_FILE: Shape = {**_DIRECTORY, "append": ("append", None), "contents": ("contents", _contents)}
_LINK: Shape = {**_NODE, **_same("hard", "target")}
_PARTITION: Shape = {
    **_same("label", "number", "guid"),
    "size": ("sizeMiB", _size),
    "start": ("startMiB", _size),
    "type_guid": ("typeGuid", _type_guid),
}
_DISK: Shape = {
    "device": ("device", None),
    "wipe_table": ("wipeTable", None),
    "partitions": ("partitions", [_PARTITION]),
}
_MOUNT: Shape = {
    **_same("device", "format", "label", "uuid", "options"),
    "create": ("create", _same("force", "options")),
    "wipe_filesystem": ("wipeFilesystem", None),
}
_FILESYSTEM: Shape = {**_same("name", "path"), "mount": ("mount", _MOUNT)}
_DROPIN: Shape = _same("name", "contents")
_UNIT: Shape = {**_same("name", "enable", "enabled", "mask", "contents"), "dropins": ("dropins", [_DROPIN])}
_NETWORK_UNIT: Shape = {**_same("name", "contents"), "dropins": ("dropins", [_DROPIN])}
_ACCOUNT: Shape = {
    **_same("uid", "gecos", "groups", "system", "shell"),
    "home_dir": ("homeDir", None),
    "no_create_home": ("noCreateHome", None),
    "primary_group": ("primaryGroup", None),
    "no_user_group": ("noUserGroup", None),
    "no_log_init": ("noLogInit", None),
}
_USER: Shape = {
    **_ACCOUNT,
    "name": ("name", None),
    "password_hash": ("passwordHash", None),
    "ssh_authorized_keys": ("sshAuthorizedKeys", None),
    "create": ("create", _ACCOUNT),
}
_GROUP: Shape = {**_same("name", "gid", "system"), "password_hash": ("passwordHash", None)}
_IGNITION: Shape = {
    "config": ("config", {"append": ("append", [_REFERENCE]), "replace": ("replace", _REFERENCE)}),
    "timeouts": (
        "timeouts",
        {"http_response_headers": ("httpResponseHeaders", None), "http_total": ("httpTotal", None)},
    ),
    "security": (
        "security",
        {"tls": ("tls", {"certificate_authorities": ("certificateAuthorities", [_REFERENCE])})},
    ),
}
_STORAGE: Shape = {
    "disks": ("disks", [_DISK]),
    "raid": ("raid", [_same("name", "level", "devices", "spares", "options")]),
    "filesystems": ("filesystems", [_FILESYSTEM]),
    "files": ("files", [_file]),
    "directories": ("directories", [_directory]),
    "links": ("links", [_link]),
}
_CONFIG: Shape = {
    "ignition": ("ignition", _IGNITION),
    "storage": ("storage", _STORAGE),
    "systemd": ("systemd", {"units": ("units", [_UNIT])}),
    "networkd": ("networkd", {"units": ("units", [_NETWORK_UNIT])}),
    "passwd": ("passwd", {"users": ("users", [_USER]), "groups": ("groups", [_GROUP])}),
}
