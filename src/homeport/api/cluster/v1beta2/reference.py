"""Types."""

from __future__ import annotations

from typing import Annotated, ClassVar

from homeport.api.field import Kind, Name
from homeport.api.meta import Model
from homeport.api.schema import Enum, Mark, Pattern, Range, Required, Size


class TemplateMeta(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class MachineTaint(Model):
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
    api_group: Required[Name] = ""
    kind: Required[Kind] = ""
    name: Required[Name] = ""


class StatusUpgradePlanVersion(Model):
    version: Required[Annotated[str, Size(1, 256)]] = ""


class StatusVersion(Model):
    replicas: Annotated[int, Range(1)] = 0
    version: Required[Annotated[str, Size(1, 256)]] = ""


class MachineNamingSpec(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    template: Annotated[str, Size(1, 256)] = ""


class MachineAddress(Model):
    address: Required[Annotated[str, Size(1, 256)]] = ""
    type: Required[Annotated[str, Enum(("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"))]] = ""
