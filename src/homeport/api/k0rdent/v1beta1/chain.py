"""Chains: which template may follow which."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0rdent.v1beta1.part import GROUP, IMMUTABLE, VERSION
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import ListType, Required


class AvailableUpgrade(Model):
    """A template that may follow."""

    name: Required[str] = ""
    version: str = ""


class SupportedTemplate(Model):
    """A template of the chain."""

    name: Required[str] = ""
    available_upgrades: list[AvailableUpgrade] = []


class ChainSpec(Model):
    """The templates of the chain and their upgrades. It can't be changed: create another chain."""

    __schema__ = (IMMUTABLE,)

    supported_templates: Annotated[list[SupportedTemplate], ListType("map", ("name",))] = []


class ChainStatus(Model):
    """Whether the chain can be used."""

    valid: bool = False
    validation_error: str = ""
    observed_generation: int = 0


@resource(GROUP, VERSION, "ClusterTemplateChain", "clustertemplatechains")
class ClusterTemplateChain(Object):
    """A ClusterTemplateChain says which ClusterTemplate a cluster may be upgraded to."""

    spec: ChainSpec = msgspec.field(default_factory=ChainSpec)
    status: ChainStatus = msgspec.field(default_factory=ChainStatus)


@resource(GROUP, VERSION, "ServiceTemplateChain", "servicetemplatechains")
class ServiceTemplateChain(Object):
    """A ServiceTemplateChain says which ServiceTemplate a service may be upgraded to."""

    spec: ChainSpec = msgspec.field(default_factory=ChainSpec)
    status: ChainStatus = msgspec.field(default_factory=ChainStatus)
