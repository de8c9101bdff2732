from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from homeport.api.meta import Model, Object, Resource, Unstructured, resource
from homeport.capi.name import BLOCK_MOVE
from homeport.capi.object.external import Externals
from homeport.capi.resolution import CRD, Contracts, NotInstalled
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Wait
from homeport.runtime.testing import Plane, definition, plane, virtual

GROUP = "infrastructure.cluster.x-k8s.io"
FOO = Resource(GROUP, "v1beta1", "FooMachine", "foomachines")
FOO2 = Resource(GROUP, "v1beta2", "FooMachine", "foomachines")


class Ref(Model):
    api_group: str = GROUP
    kind: str = "FooMachine"
    name: str = ""


class OwnerSpec(Model):
    ref: Ref = msgspec.field(default_factory=Ref)


@resource("example.com", "v1", "Owner", "owners")
class Owner(Object):
    spec: OwnerSpec = msgspec.field(default_factory=OwnerSpec)


class Seen(NamedTuple):
    owner: str
    found: str  # what the foreign object says, or why it does not


class Asking:
    """Asks for what its object refers to, and notes what it got."""

    def __init__(self, p: Plane) -> None:
        self.contracts = Contracts(p.manager.informers)
        self.externals = Externals(p.manager, self.contracts)
        self.owners = p.manager.informers.get(Owner)
        self.controller = p.manager.add(Controller("owner", Owner, self))
        self.seen: list[Seen] = []

    async def reconcile(self, key: Key) -> Wait | None:
        owner = self.owners.cache.get(key)
        if owner is None:
            return None
        try:
            found = await self.externals.find(
                owner.spec.ref, key.namespace, watcher=self.controller, owner_kind=Owner.__resource__
            )
        except NotInstalled:
            self.seen.append(Seen(key.name, "not installed"))
            return Wait("NotInstalled")
        if found is None:
            self.seen.append(Seen(key.name, "none"))
        else:
            obj, served = found
            self.seen.append(Seen(key.name, f"{obj['spec']['say']} {served.resource.version} {served.contract}"))
        return None


def crd(*versions: str, **labels: str) -> dict[str, Any]:
    made = definition(Resource(GROUP, versions[0], "FooMachine", "foomachines"))
    for version in versions[1:]:
        made["spec"]["versions"].append({**made["spec"]["versions"][0], "name": version, "storage": False})
    made["metadata"]["labels"] = {f"cluster.x-k8s.io/{contract}": listed for contract, listed in labels.items()}
    return made


def owner(name: str, refers: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Owner",
        "metadata": {"name": name},
        "spec": {"ref": {"name": refers}},
    }


def foo(name: str, say: str, *owners: Unstructured) -> dict[str, Any]:
    references = [{"apiVersion": "example.com/v1", "kind": "Owner", "name": o.name, "uid": o.uid} for o in owners]
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "FooMachine",
        "metadata": {"name": name, "ownerReferences": references},
        "spec": {"say": say},
    }


@asynccontextmanager
async def asking(*crds: dict[str, Any]) -> AsyncIterator[tuple[Plane, Asking]]:
    made: list[Asking] = []
    async with plane(lambda p: made.append(Asking(p)), crds=[definition(Owner.__resource__), *crds]) as p:
        yield p, made[0]


@virtual
async def test_an_object_is_read_and_its_changes_wake_its_owner() -> None:
    async with asking(crd("v1beta1", v1beta1="v1beta1")) as (p, a):
        (made,) = await p.have(owner("a", "x"))
        await p.settle()
        await p.have(foo("x", "hello", made))
        await p.settle()
        await p.client.patch(FOO, Key("default", "x"), MergePatch({"spec": {"say": "bye"}}))
        await p.settle()
        assert a.seen == [Seen("a", "none"), Seen("a", "hello v1beta1 v1beta1"), Seen("a", "bye v1beta1 v1beta1")]


@virtual
async def test_the_bookkeeping_of_a_provider_does_not_wake_the_owner_until_the_object_goes() -> None:
    async with asking(crd("v1beta1", v1beta1="v1beta1")) as (p, a):
        (made,) = await p.have(owner("a", "x"))
        await p.have(foo("x", "hello", made))
        await p.settle()
        a.seen.clear()
        key = Key("default", "x")
        marks = {"finalizers": ["example.com/foo"], "annotations": {BLOCK_MOVE: "true"}}
        await p.client.patch(FOO, key, MergePatch({"metadata": marks}))
        await p.settle()
        assert a.seen == []
        await p.client.patch(FOO, key, MergePatch({"metadata": {"annotations": {"other": "news"}}}))
        await p.settle()
        assert len(a.seen) == 1
        await p.client.delete(FOO, key)
        await p.settle()
        assert len(a.seen) == 2
        await p.client.patch(FOO, key, MergePatch({"metadata": {"finalizers": []}}))
        await p.settle()
        assert a.seen[-1] == Seen("a", "none")


@virtual
async def test_an_object_without_an_owner_wakes_who_waited_for_it_when_it_appears() -> None:
    async with asking(crd("v1beta1", v1beta1="v1beta1")) as (p, a):
        await p.have(owner("a", "x"), owner("b", "y"))
        await p.settle()
        a.seen.clear()
        await p.have(foo("x", "hello"))
        await p.settle()
        assert a.seen == [Seen("a", "hello v1beta1 v1beta1")]


@virtual
async def test_a_kind_that_gets_installed_wakes_who_asked_for_it() -> None:
    async with asking() as (p, a):
        await p.have(owner("a", "x"))
        await p.settle()
        assert a.seen == [Seen("a", "not installed")]
        await p.have(crd("v1beta1", v1beta1="v1beta1"))
        await p.settle(quiet=60)
        assert a.seen[-1] == Seen("a", "none")
        await p.have(foo("x", "hello"))
        await p.settle(quiet=60)
        assert a.seen[-1] == Seen("a", "hello v1beta1 v1beta1")


@virtual
async def test_a_newer_contract_is_used_from_the_moment_it_is_there() -> None:
    async with asking(crd("v1beta1", "v1beta2", v1beta1="v1beta1")) as (p, a):
        (made,) = await p.have(owner("a", "x"))
        await p.have(foo("x", "hello", made))
        await p.settle()
        assert a.seen[-1] == Seen("a", "hello v1beta1 v1beta1")
        labels = {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}}}
        await p.client.patch(CRD, Key("", FOO.qualified), MergePatch(labels))
        await p.settle()
        assert a.seen[-1] == Seen("a", "hello v1beta2 v1beta2")
        a.seen.clear()
        await p.client.patch(FOO, Key("default", "x"), MergePatch({"spec": {"say": "bye"}}))
        await p.settle()
        assert a.seen == [Seen("a", "bye v1beta2 v1beta2")]
        assert [i.resource for i in p.manager.informers.of(FOO)] == [FOO2]


@virtual
async def test_what_is_known_can_be_had_without_asking_anybody() -> None:
    async with asking(crd("v1beta1", v1beta1="v1beta1")) as (p, a):
        ref = Ref(name="x")
        assert a.externals.cached(ref, "default") is None
        (made,) = await p.have(owner("a", "x"))
        await p.have(foo("x", "hello", made))
        await p.settle()
        known = a.externals.cached(ref, "default")
        assert known is not None
        assert known["spec"]["say"] == "hello"
        assert a.externals.served(ref).resource == FOO


@virtual
async def test_many_who_ask_share_one_watch() -> None:
    async with asking(crd("v1beta1", v1beta1="v1beta1")) as (p, a):
        await asyncio.gather(*(p.have(owner(f"o{i}", f"x{i}")) for i in range(20)))
        await p.settle()
        assert len(p.manager.informers.of(FOO)) == 1
        assert {s.found for s in a.seen} == {"none"}
