"""What cloud-init sets up on a host besides kubeadm: files, users, disks, time."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta2.host import (
    FileSource,
    PartitionSpec,
    PasswdSource,
)
from homeport.api.meta import Model
from homeport.api.schema import Enum, Required, Size


class Filesystem(Model):
    """A filesystem to make."""

    device: Required[Annotated[str, Size(1, 256)]] = ""
    extra_opts: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []
    filesystem: Required[Annotated[str, Size(1, 128)]] = ""
    label: Annotated[str, Size(1, 512)] = ""
    overwrite: bool | None = None
    partition: Annotated[str, Size(1, 128)] | None = None
    replace_fs: Annotated[str, Size(1, 128)] | None = msgspec.field(default=None, name="replaceFS")


class Partition(Model):
    """How a disk is partitioned."""

    device: Required[Annotated[str, Size(1, 256)]] = ""
    disk_layout: Annotated[list[PartitionSpec], Size(1, 100)] = []
    layout: Required[bool] = False
    overwrite: bool | None = None
    table_type: Annotated[str, Enum(("mbr", "gpt"))] | None = None


class DiskSetup(Model):
    """Partitions and filesystems to make at first boot."""

    filesystems: Annotated[list[Filesystem], Size(None, 100)] = []
    partitions: Annotated[list[Partition], Size(None, 100)] = []


class File(Model):
    """A file to write before kubeadm runs."""

    append: bool = False
    content: Annotated[str, Size(1, 10240)] = ""
    content_format: Annotated[str, Enum(("Raw", "Template"))] = ""
    content_from: FileSource | None = None
    encoding: Annotated[str, Enum(("base64", "gzip", "gzip+base64"))] = ""
    owner: Annotated[str, Size(1, 256)] = ""
    path: Required[Annotated[str, Size(1, 512)]] = ""
    permissions: Annotated[str, Size(1, 16)] = ""


class ContainerLinuxConfig(Model):
    """Extra Container Linux Config for Ignition."""

    additional_config: Annotated[str, Size(1, 32768)] = ""
    strict: bool = False


class IgnitionSpec(Model):
    """Settings of Ignition."""

    container_linux_config: ContainerLinuxConfig | None = None


class NTP(Model):
    """Time servers of the host."""

    enabled: bool | None = None
    servers: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 100)] = []


class User(Model):
    """A user to make on the host."""

    gecos: Annotated[str, Size(1, 256)] | None = None
    groups: Annotated[str, Size(1, 256)] | None = None
    home_dir: Annotated[str, Size(1, 256)] | None = None
    inactive: bool | None = None
    lock_password: bool | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""
    passwd: Annotated[str, Size(1, 256)] | None = None
    passwd_from: PasswdSource | None = None
    primary_group: Annotated[str, Size(1, 256)] | None = None
    shell: Annotated[str, Size(1, 256)] | None = None
    ssh_authorized_keys: Annotated[list[Annotated[str, Size(1, 2048)]], Size(None, 100)] = []
    sudo: Annotated[str, Size(1, 256)] | None = None
