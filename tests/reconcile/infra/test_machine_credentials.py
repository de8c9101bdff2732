"""Machines that name their own credentials: the Secret is kept while they need it, and given back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from homeport.api.meta import Resource
from homeport.api.nutanix.v1beta1 import NutanixMachine
from homeport.capi.cloud import Sources
from homeport.capi.definition import kind as capi_definition
from homeport.client.protocol import Key, MergePatch
from homeport.infra.install import _add_sources, _Links
from homeport.ipam.definition import definitions as pool_definitions
from homeport.providers.nutanix import definition
from homeport.providers.nutanix.install import SOURCE_FINALIZER, install
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, virtual

SECRET = Resource("", "v1", "Secret", "secrets")
OWN = Key("default", "own")
NAMED = "example.com/credentials"


def _sources(machine: NutanixMachine) -> Sources:
    name = machine.metadata.annotations.get(NAMED, "")
    return Sources((Key(machine.metadata.namespace, name),)) if name else Sources()


def _machine() -> dict[str, Any]:
    spec = {"vcpuSockets": 1, "vcpusPerSocket": 1, "memorySize": "4Gi", "systemDiskSize": "40Gi", "subnet": []}
    meta = {"name": "a", "namespace": "default", "annotations": {NAMED: OWN.name}}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachine",
        "metadata": meta,
        "spec": spec,
    }


def _secret(name: str, *finalizers: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


def _held(secret: Any) -> bool:
    return SOURCE_FINALIZER in (secret.metadata.get("finalizers") or ())


@asynccontextmanager
async def _keeping() -> AsyncIterator[tuple[Plane, _Links]]:
    """A plane with the controllers that keep Secrets, not started."""
    async with plane() as p:
        await establish(p.client, *capi_definition.definitions(), *pool_definitions(), *definition.definitions())
        provider = replace(install(Manager(p.client, clock=p.clock)), machine_sources=_sources)
        p.manager = Manager(p.server.client(), clock=p.clock)
        links = _Links(p.manager, provider)
        _add_sources(p.manager, provider, links)
        yield p, links


@virtual
async def test_a_secret_that_a_machine_names_is_kept_while_the_machine_exists() -> None:
    async with _keeping() as (p, links):
        await p.start()
        await p.have(_secret(OWN.name))
        await p.have(_machine())
        await p.until(SECRET, OWN, _held, 30)
        assert list(links.machines_of_users(await p.client.get(SECRET, OWN))) == [Key("default", "a")]
        await p.client.patch(NutanixMachine, Key("default", "a"), MergePatch({"metadata": {"annotations": None}}))
        await p.until(SECRET, OWN, lambda s: not s.metadata.get("finalizers"), 30)


@virtual
async def test_a_secret_that_comes_after_its_machine_is_kept() -> None:
    async with _keeping() as (p, _):
        await p.start()
        await p.have(_machine())
        await p.have(_secret(OWN.name))
        await p.until(SECRET, OWN, _held, 30)


@virtual
async def test_a_secret_whose_machine_went_while_the_plane_was_stopped_is_given_back() -> None:
    async with _keeping() as (p, _):
        await p.have(_secret(OWN.name, SOURCE_FINALIZER))
        await p.start()
        await p.until(SECRET, OWN, lambda s: not s.metadata.get("finalizers"), 30)


@virtual
async def test_secrets_that_no_machine_names_are_not_looked_at() -> None:
    async with _keeping() as (p, _):
        await p.have(_secret("other"))
        await p.start()
        await p.have(_secret("another"))
        await p.have(_secret(OWN.name))
        await p.have(_machine())
        await p.until(SECRET, OWN, _held, 30)
        await p.settle()
        secrets = next(each for each in p.manager.controllers if each.name == "nutanixsecret")
        assert (
            sum(secrets.metrics.counts.values()) <= 2
        )  # of the one that is named: it is woken by its machine and its write
