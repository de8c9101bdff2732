"""Parts that many kinds share: references, template metadata, gates and taints."""

from __future__ import annotations

from typing import Annotated

from homeport.api.field import Kind, Name, NonEmpty
from homeport.api.meta import Model
from homeport.api.schema import Enum, Pattern, Range, Required, Size


class TemplateMeta(NonEmpty):
    """Labels and annotations that objects get when they are made."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class MachineTaint(Model):
    """A taint that is kept on the Node, or set once when it joins."""

    effect: Required[Annotated[str, Enum(("NoSchedule", "PreferNoSchedule", "NoExecute"))]] = ""
    key: Required[
        Annotated[
            str,
            Size(1, 317),
            Pattern(
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
            ),
        ]
    ] = ""
    propagation: Required[Annotated[str, Enum(("Always", "OnInitialization"))]] = ""
    value: Annotated[str, Size(1, 63), Pattern("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")] = ""


class ContractRef(Model):
    """An object in the same namespace. Which version is read follows from the contract its kind keeps."""

    api_group: Required[Name] = ""
    kind: Required[Kind] = ""
    name: Required[Name] = ""


class StatusUpgradePlanVersion(Model):
    """A version on the way of an upgrade."""

    version: Required[Annotated[str, Size(1, 256)]] = ""


class StatusVersion(Model):
    """How many replicas run a version."""

    replicas: Annotated[int, Range(1)] = 0
    version: Required[Annotated[str, Size(1, 256)]] = ""


class MachineNamingSpec(NonEmpty):
    """How Machines are named."""

    template: Annotated[str, Size(1, 256)] = ""


class MachineAddress(Model):
    """An address of the host."""

    address: Required[Annotated[str, Size(1, 256)]] = ""
    type: Required[Annotated[str, Enum(("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"))]] = ""
