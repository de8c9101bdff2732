"""What cloud-init sets up on a host besides kubeadm: files, users, disks, time."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.field import NonEmpty
from homeport.api.meta import Model
from homeport.api.schema import Enum, ListType, Mark, Range, Required, Rule, Size


class Filesystem(Model):
    """A filesystem to make."""

    device: Required[Annotated[str, Size(1, 256)]] = ""
    extra_opts: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100), ListType("atomic")] = []
    filesystem: Required[Annotated[str, Size(1, 128)]] = ""
    label: Annotated[str, Size(1, 512)] = ""
    overwrite: bool | None = None
    partition: Annotated[str, Size(1, 128)] = ""
    replace_fs: Annotated[str, Size(1, 128)] = msgspec.field(default="", name="replaceFS")


class PartitionSpec(Model):
    """One partition of a disk."""

    partition_type: Annotated[
        str,
        Size(1, 36),
        Rule(
            "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')",
            "must be Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or the GUID of a partition type",
        ),
    ] = ""
    percentage: Required[Annotated[int, Range(1, 100)]] = 0


class Partition(Model):
    """How a disk is partitioned."""

    __schema__: ClassVar[tuple[Mark, ...]] = (
        Rule(
            "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1", "give either layout or diskLayout"
        ),
    )

    device: Required[Annotated[str, Size(1, 256)]] = ""
    disk_layout: Annotated[list[PartitionSpec], Size(1, 100), ListType("atomic")] = []
    layout: bool | None = None
    overwrite: bool | None = None
    table_type: Annotated[str, Enum(("mbr", "gpt"))] = ""


class DiskSetup(NonEmpty):
    """Partitions and filesystems to make at first boot."""

    filesystems: Annotated[list[Filesystem], Size(None, 100), ListType("atomic")] = []
    partitions: Annotated[list[Partition], Size(None, 100), ListType("atomic")] = []


class SecretFileSource(Model):
    """A key of a Secret with the content of a file."""

    key: Required[Annotated[str, Size(1, 256)]] = ""
    name: Required[Annotated[str, Size(1, 253)]] = ""


class FileSource(Model):
    """Where the content of a file comes from."""

    secret: Required[SecretFileSource] = msgspec.field(default_factory=SecretFileSource)


class File(Model):
    """A file to write before kubeadm runs."""

    append: bool | None = None
    content: Annotated[str, Size(1, 10240)] = ""
    content_format: Annotated[str, Enum(("Raw", "Template"))] = ""
    content_from: FileSource = msgspec.field(default_factory=FileSource)
    encoding: Annotated[str, Enum(("base64", "gzip", "gzip+base64"))] = ""
    owner: Annotated[str, Size(1, 256)] = ""
    path: Required[Annotated[str, Size(1, 512)]] = ""
    permissions: Annotated[str, Size(1, 16)] = ""


class ContainerLinuxConfig(NonEmpty):
    """Extra Container Linux Config for Ignition."""

    additional_config: Annotated[str, Size(1, 32768)] = ""
    strict: bool | None = None


class IgnitionSpec(NonEmpty):
    """Settings of Ignition."""

    container_linux_config: ContainerLinuxConfig = msgspec.field(default_factory=ContainerLinuxConfig)


class NTP(NonEmpty):
    """Time servers of the host."""

    enabled: bool | None = None
    servers: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 100), ListType("atomic")] = []


class SecretPasswdSource(Model):
    """A key of a Secret with a password."""

    key: Required[Annotated[str, Size(1, 256)]] = ""
    name: Required[Annotated[str, Size(1, 253)]] = ""


class PasswdSource(Model):
    """Where a password comes from."""

    secret: Required[SecretPasswdSource] = msgspec.field(default_factory=SecretPasswdSource)


class User(Model):
    """A user to make on the host."""

    gecos: Annotated[str, Size(1, 256)] = ""
    groups: Annotated[str, Size(1, 256)] = ""
    home_dir: Annotated[str, Size(1, 256)] = ""
    inactive: bool | None = None
    lock_password: bool | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""
    passwd: Annotated[str, Size(1, 256)] = ""
    passwd_from: PasswdSource = msgspec.field(default_factory=PasswdSource)
    primary_group: Annotated[str, Size(1, 256)] = ""
    shell: Annotated[str, Size(1, 256)] = ""
    ssh_authorized_keys: Annotated[list[Annotated[str, Size(1, 2048)]], Size(None, 100), ListType("atomic")] = []
    sudo: Annotated[str, Size(1, 256)] = ""
