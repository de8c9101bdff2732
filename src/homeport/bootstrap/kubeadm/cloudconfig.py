"""User data as a cloud-config for cloud-init."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.userdata import SUCCESS_FILE, SUCCESS_FOLDER, File, Json, UserData, ended

_HEADER = "## template: jinja\n#cloud-config\n\n"
_CONFIGURATION = {"init": "/run/kubeadm/kubeadm.yaml", "join": "/run/kubeadm/kubeadm-join-config.yaml"}
# cloud-init makes the folders of a file; there is no `mkdir -p` on Windows.
_PLACEHOLDER = File(
    f"{SUCCESS_FOLDER}/placeholder", "the directory of the success file is created first\n", "root:root", "0640"
)
# Hexadecimal codes. Those that look like numbers are given as numbers: older schemas of cloud-init know no others.
_PARTITION_TYPES: dict[str, int | str] = {
    "Linux": 83,
    "LinuxSwap": 82,
    "LinuxRAID": "fd",
    "LVM": "8e",
    "Fat32": "0c",
    "NTFS": "07",
    "LinuxExtended": 85,
}
_USER = (
    ("name", "name"),
    ("passwd", "passwd"),
    ("gecos", "gecos"),
    ("groups", "groups"),
    ("homeDir", "homedir"),
    ("lockPassword", "lock_passwd"),
    ("shell", "shell"),
    ("primaryGroup", "primary_group"),
    ("sudo", "sudo"),
    ("sshAuthorizedKeys", "ssh_authorized_keys"),
)
_FILESYSTEM = (
    ("label", "label"),
    ("filesystem", "filesystem"),
    ("device", "device"),
    ("partition", "partition"),
    ("overwrite", "overwrite"),
    ("replaceFS", "replace_fs"),
    ("extraOpts", "extra_opts"),
)


def render_cloud_config(data: UserData) -> str:
    path = _CONFIGURATION[data.verb]
    documents = "".join(f"---\n{dump_yaml(document)}" for document in data.configuration)
    files = (*data.files, File(path, documents, "root:root", "0640"), _PLACEHOLDER)
    run = f"{data.command(path)} && echo success > {SUCCESS_FILE}"
    config: Json = {"write_files": [_file(each) for each in files]}
    if data.boot_commands:
        config["bootcmd"] = list(data.boot_commands)
    config["runcmd"] = [*data.pre_commands, run, *data.post_commands]
    config.update(_optional(data))
    return _HEADER + dump_yaml(config)


def _optional(data: UserData) -> Iterator[tuple[str, Any]]:
    if data.ntp:
        yield "ntp", {name: data.ntp[name] for name in ("enabled", "servers") if data.ntp.get(name) is not None}
    if data.users:
        yield "users", [_user(each) for each in data.users]
    if data.disk_setup.get("partitions"):
        yield "disk_setup", {each["device"]: _partition(each) for each in data.disk_setup["partitions"]}
    if data.disk_setup.get("filesystems"):
        yield "fs_setup", [_renamed(each, _FILESYSTEM) for each in data.disk_setup["filesystems"]]
    if data.mounts:
        yield "mounts", [list(each) for each in data.mounts]


def _file(file: File) -> Json:
    entry: Json = {"path": file.path}
    if file.encoding:
        entry["encoding"] = file.encoding
    if file.owner:
        entry["owner"] = file.owner
    if file.permissions:
        entry["permissions"] = file.permissions
    if file.append:
        entry["append"] = True
    entry["content"] = file.content if file.encoding else ended(file.content)
    return entry


def _user(user: Json) -> Json:
    entry = _renamed(user, _USER)
    if user.get("inactive"):
        entry["inactive"] = "0"  # cloud-init wants the number of days after which the account is closed
    return entry


def _partition(partition: Json) -> Json:
    entry: Json = {}
    if partition.get("tableType"):
        entry["table_type"] = partition["tableType"]
    layout = partition.get("diskLayout")
    entry["layout"] = [_share(each) for each in layout] if layout else bool(partition.get("layout"))
    if partition.get("overwrite") is not None:
        entry["overwrite"] = partition["overwrite"]
    return entry


def _share(share: Json) -> Any:
    kind = share.get("partitionType")
    return [share["percentage"], _PARTITION_TYPES.get(kind, kind)] if kind else share["percentage"]


def _renamed(given: Json, names: tuple[tuple[str, str], ...]) -> Json:
    return {theirs: given[ours] for ours, theirs in names if given.get(ours) not in (None, "", [])}
