"""Which version of a provider's kind to read and write, and which contract it follows.

A provider labels its CRDs with the versions that follow each contract. Two contracts are supported: v1beta2, and
v1beta1 for older providers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from homeport.api.meta import Resource
from homeport.capi.contract import Contract
from homeport.capi.name import CONTRACT_LABEL_PREFIX
from homeport.client.protocol import Key
from homeport.machinery.gvk import version_order
from homeport.runtime.informer import metadata_only
from homeport.runtime.informers import Informers

CONTRACTS: tuple[Contract, ...] = ("v1beta2", "v1beta1")  # the best first

CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


class Reference(Protocol):
    """A ContractRef: a kind without its version, and a name in the namespace of whoever refers."""

    @property
    def api_group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...


class ResolvedResource(NamedTuple):
    """Where objects of a provider's kind are read and written, and which contract they follow."""

    resource: Resource
    contract: Contract


class NotInstalled(Exception):
    """A kind that is referred to is not served, or its CRD names no contract that we know.

    `defined`: the CRD exists, so there may be objects of the kind.
    """

    def __init__(self, message: str, *, defined: bool = False) -> None:
        super().__init__(message)
        self.defined = defined


def plural(kind: str) -> str:
    """The plural by which a CRD of the contract must be named."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


class Contracts:
    """Finds the version of a provider's kind to use. Watches the metadata of CRDs."""

    def __init__(self, informers: Informers) -> None:
        self.informer = informers.get(metadata_only(CRD))

    def find(self, group: str, kind: str) -> ResolvedResource | None:
        """None: not installed, or without a contract that we know."""
        definition = self.informer.cache.get(Key("", f"{plural(kind)}.{group}"))
        return None if definition is None else pick(definition.metadata.labels, group, kind)

    def resolve(self, ref: Reference) -> ResolvedResource:
        """Raises NotInstalled."""
        found = self.find(ref.api_group, ref.kind)
        if found is not None:
            return found
        name = f"{plural(ref.kind)}.{ref.api_group}"
        if Key("", name) in self.informer.cache:
            raise NotInstalled(
                f"the CRD {name} has no label {CONTRACT_LABEL_PREFIX}v1beta2 or {CONTRACT_LABEL_PREFIX}v1beta1, so "
                f"{ref.kind} {ref.name!r} can't be used: install a version of the provider that follows the contract",
                defined=True,
            )
        raise NotInstalled(
            f"kind {ref.kind} of group {ref.api_group} is not installed (no CRD {name}): install its provider, or "
            f"correct the reference to {ref.name!r}"
        )


def pick(labels: Mapping[str, str], group: str, kind: str) -> ResolvedResource | None:
    """The newest version of the newest contract that a CRD's labels name."""
    for contract in CONTRACTS:
        listed = labels.get(CONTRACT_LABEL_PREFIX + contract, "")
        if listed.strip("_"):
            return _served(listed, contract, group, kind)
    return None


@functools.lru_cache(maxsize=256)
def _served(listed: str, contract: Contract, group: str, kind: str) -> ResolvedResource:
    """Cached: every reconcile asks, and the labels of CRDs hardly ever change."""
    newest = min((version for version in listed.split("_") if version), key=version_order)
    return ResolvedResource(Resource(group, newest, kind, plural(kind)), contract)
