"""User data as an Ignition config.

Version 2.3.0 of the format, as every Cluster API provider with Ignition expects: it is what Flatcar's transpiler makes
of a Container Linux Config, and `additionalConfig` of users is one. Files go to /etc rather than /run, because Ignition
runs before /run is mounted; a unit runs kubeadm once the network is up.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import orjson

from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.containerlinux import merge, transpile
from homeport.bootstrap.kubeadm.userdata import SUCCESS_FILE, SUCCESS_FOLDER, File, Json, UserData, ended

VERSION = "2.3.0"
_CONFIGURATION = "/etc/kubeadm.yml"
_SCRIPT = "/etc/kubeadm.sh"
_UNIT = f"""\
[Unit]
Description=Join this machine to the cluster
# The configuration is moved away by the first success: the unit runs once.
ConditionPathExists={_CONFIGURATION}
After=network.target
[Service]
Type=oneshot
ExecStart=/bin/bash {_SCRIPT}
[Install]
WantedBy=multi-user.target
"""
_SSHD = """\
Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no
PrintMotd no

Match User {users}
  PasswordAuthentication yes
"""
_NTP_RESTRICTIONS = """\
restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
"""


class BadContent(ValueError):
    """Something that Ignition has no way to say, or content that is not what its encoding claims."""


def render_ignition(data: UserData, additional: str = "", *, strict: bool = False) -> str:
    """`additional` is the user's Container Linux Config; where both say something, it wins."""
    config: Json = {"ignition": {"version": VERSION}}
    users = [_user(each) for each in data.users]
    if users:
        config["passwd"] = {"users": users}
    config["storage"] = _storage(data)
    config["systemd"] = {"units": list(_units(data))}
    if additional.strip():
        config = merge(config, transpile(additional, strict=strict))
    return orjson.dumps(config).decode()


# -- files ---------------------------------------------------------------------------------------------------------


def _storage(data: UserData) -> Json:
    storage: Json = {}
    partitions = data.disk_setup.get("partitions") or ()
    if partitions:
        storage["disks"] = [_disk(each) for each in partitions]
    filesystems = data.disk_setup.get("filesystems") or ()
    if filesystems:
        storage["filesystems"] = [_filesystem(each) for each in filesystems]
    storage["files"] = [file_entry(each) for each in _files(data)]
    return storage


def _files(data: UserData) -> Iterator[File]:
    for user in data.users:
        if user.get("sudo"):
            yield File(f"/etc/sudoers.d/{user['name']}", f"{user['name']} {user['sudo']}", permissions="0600")
    with_password = [user["name"] for user in data.users if user.get("lockPassword") is False]
    if with_password:
        yield File("/etc/ssh/sshd_config", _SSHD.format(users=",".join(with_password)), permissions="0600")
    yield from data.files
    yield File(_SCRIPT, _script(data), permissions="0700")
    documents = "".join(f"---\n{dump_yaml(document)}" for document in data.configuration)
    yield File(_CONFIGURATION, documents, permissions="0600")
    servers = data.ntp.get("servers") or ()
    if data.ntp.get("enabled") and servers:
        lines = "".join(f"server {each}\n" for each in servers)
        yield File("/etc/ntp.conf", lines + _NTP_RESTRICTIONS, permissions="0644")


def _script(data: UserData) -> str:
    lines = [
        "#!/bin/bash",
        "set -e",
        *data.pre_commands,
        data.command(_CONFIGURATION),
        f"mkdir -p {SUCCESS_FOLDER} && echo success > {SUCCESS_FILE}",
        f"mv {_CONFIGURATION} /tmp/",
        *data.post_commands,
    ]
    return "\n".join(lines) + "\n"


def file_entry(file: File) -> Json:
    entry: Json = {"filesystem": "root", "path": file.path, "contents": {"source": data_url(_bytes(file))}}
    if file.append:
        entry["append"] = True
    if file.permissions:
        entry["mode"] = _mode(file)
    user, _, group = file.owner.partition(":")
    for name, value in (("user", user.strip()), ("group", group.strip())):
        if value:
            entry[name] = {"name": value}
    return entry


def data_url(content: bytes) -> str:
    return "data:," + quote_from_bytes(content, safe="")


def _bytes(file: File) -> bytes:
    if not file.encoding:
        return ended(file.content).encode()
    if file.encoding != "base64":
        raise BadContent(f"{file.path}: encoding {file.encoding} is not supported with Ignition: use base64")
    try:
        return base64.b64decode(file.content)
    except binascii.Error as broken:
        raise BadContent(f"{file.path}: content is not base64: {broken}") from broken


def _mode(file: File) -> int:
    try:
        return int(file.permissions, 8)
    except ValueError as wrong:
        raise BadContent(f"{file.path}: permissions {file.permissions!r} are not an octal number") from wrong


# -- users, units, disks -------------------------------------------------------------------------------------------


def _user(user: Json) -> Json:
    entry: Json = {"name": user["name"]}
    for ours, theirs in (
        ("gecos", "gecos"),
        ("homeDir", "homeDir"),
        ("shell", "shell"),
        ("passwd", "passwordHash"),
        ("primaryGroup", "primaryGroup"),
        ("sshAuthorizedKeys", "sshAuthorizedKeys"),
    ):
        if user.get(ours):
            entry[theirs] = user[ours]
    groups = [each.strip() for each in str(user.get("groups") or "").split(",") if each.strip()]
    if groups:
        entry["groups"] = groups
    return entry


def _units(data: UserData) -> Iterator[Json]:
    yield {"name": "kubeadm.service", "enabled": True, "contents": _UNIT}
    if data.ntp.get("enabled"):
        yield {"name": "ntpd.service", "enabled": True}
    devices = {each.get("label"): each["device"] for each in data.disk_setup.get("filesystems") or ()}
    for mount in data.mounts:
        yield _mount(mount, devices)


def _mount(mount: tuple[str, ...], devices: dict[Any, str]) -> Json:
    """(label or device, folder, options...)."""
    if len(mount) < 2:
        raise BadContent(f"mounts: {list(mount)} has no mount point")
    what, where, *options = mount
    lines = ["[Unit]", f"Description=Mount {what}", "", "[Mount]", f"What={devices.get(what, what)}", f"Where={where}"]
    if options:
        lines.append(f"Options={','.join(options)}")
    lines += ["", "[Install]", "WantedBy=multi-user.target", ""]
    return {"name": f"{unit_name(where)}.mount", "enabled": True, "contents": "\n".join(lines)}


def unit_name(path: str) -> str:
    """As systemd-escape --path writes a path: its dashes must not be taken for slashes."""
    parts = [each for each in path.split("/") if each]
    if not parts:
        return "-"
    return "-".join("".join(_unit_character(c, i) for i, c in enumerate(part)) for part in parts)


def _unit_character(character: str, position: int) -> str:
    if character.isascii() and (character.isalnum() or character in ":_" or (character == "." and position > 0)):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())


def _disk(partition: Json) -> Json:
    entry: Json = {"device": partition["device"]}
    if partition.get("overwrite"):
        entry["wipeTable"] = True
    if partition.get("layout"):
        entry["partitions"] = [{}]
    elif partition.get("diskLayout"):
        # Ignition counts in MiB and knows nothing of percentages.
        raise BadContent(
            f"diskSetup of {partition['device']}: diskLayout is not supported with Ignition: describe the partitions "
            "in ignition.containerLinuxConfig.additionalConfig"
        )
    return entry


def _filesystem(filesystem: Json) -> Json:
    mount: Json = {"device": filesystem["device"], "format": filesystem["filesystem"]}
    mount["wipeFilesystem"] = bool(filesystem.get("overwrite"))
    if filesystem.get("label"):
        mount["label"] = filesystem["label"]
    if filesystem.get("extraOpts"):
        mount["options"] = list(filesystem["extraOpts"])
    return {"name": filesystem.get("label") or filesystem["device"], "mount": mount}
