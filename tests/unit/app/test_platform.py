"""What the plane is made of: definitions and hooks at its start, controllers with what they need."""

from __future__ import annotations

import asyncio
import copy
import sys
import types
from collections.abc import AsyncIterator
from typing import Any

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app import definition as app_definition
from homeport.app.definition import DIGEST, DefinitionError, install_definitions
from homeport.app.platform import Platform, PluginError, chosen, load
from homeport.capi.component import Component, LogDeployment, Setup
from homeport.capi.environment import Environment
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.runtime.definition import CRD, SHARED_LABEL, definition, established
from homeport.runtime.manager import Manager
from homeport.runtime.testing import shared_pki
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks

BOAT = Resource("harbour.example.com", "v1", "Boat", "boats")
BODY: dict[str, Any] = {"apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}}


def _nothing(setup: Setup) -> None:
    del setup


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedServer]:
    server = await EmbeddedServer.open(None, shared_pki())
    yield server
    await server.close()


async def test_definitions_are_served_when_they_are_installed_and_written_once(server: EmbeddedServer) -> None:
    client = server.client()
    await install_definitions(client, [definition(BOAT)])
    found = await client.get(CRD, Key("", "boats.harbour.example.com"))
    assert established(found)
    await client.create({**BODY, "metadata": {"name": "b", "namespace": "default"}}, kind=BOAT)
    revision = server.store.revision
    await install_definitions(client, [definition(BOAT)])
    assert server.store.revision == revision


async def test_a_new_version_of_a_definition_replaces_the_old_and_keeps_the_objects(server: EmbeddedServer) -> None:
    client = server.client()
    await install_definitions(client, [definition(BOAT)])
    await client.create({**BODY, "metadata": {"name": "b", "namespace": "default"}}, kind=BOAT)
    newer = definition(BOAT, schema={"type": "object", "properties": {"spec": {"type": "object"}}})
    newer["spec"]["versions"].append({**copy.deepcopy(newer["spec"]["versions"][0]), "name": "v2", "storage": False})
    await install_definitions(client, [newer])
    found = await client.get(Resource(BOAT.group, "v2", "Boat", "boats"), Key("default", "b"))
    assert found["apiVersion"] == "harbour.example.com/v2"
    stored = await client.get(CRD, Key("", "boats.harbour.example.com"))
    assert [version["name"] for version in stored["spec"]["versions"]] == ["v1", "v2"]


async def test_a_definition_that_somebody_else_installed_is_taken_over(server: EmbeddedServer) -> None:
    client = server.client(field_manager="kubectl")
    await client.create(definition(BOAT), kind=CRD)
    await install_definitions(server.client(), [definition(BOAT, schema={"type": "object"})])
    stored = await client.get(CRD, Key("", "boats.harbour.example.com"))
    assert stored["metadata"]["annotations"][DIGEST]
    schema = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "x-kubernetes-preserve-unknown-fields" not in schema


async def test_a_definition_of_another_project_stays_where_that_project_has_installed_it(
    server: EmbeddedServer,
) -> None:
    shared = definition(BOAT, schema={"type": "object"})
    shared["metadata"]["labels"] = {SHARED_LABEL: "true"}
    client = server.client(field_manager="kubectl")
    await client.create(definition(BOAT), kind=CRD)
    await install_definitions(server.client(), [shared])
    stored = await client.get(CRD, Key("", "boats.harbour.example.com"))
    assert "x-kubernetes-preserve-unknown-fields" in stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert DIGEST not in (stored["metadata"].get("annotations") or {})


async def test_a_version_that_objects_are_stored_in_is_not_taken_away(server: EmbeddedServer) -> None:
    client = server.client()
    await install_definitions(client, [definition(BOAT)])
    other = definition(Resource(BOAT.group, "v2", "Boat", "boats"))
    with pytest.raises(DefinitionError, match=r"boats\.harbour\.example\.com: objects of v1 may be stored"):
        await install_definitions(client, [other])


async def _being_deleted(client: Client) -> Unstructured:
    """A definition whose removal does not go on by itself."""
    body = definition(BOAT)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    made = await client.create(body, kind=CRD)
    await client.delete(CRD, Key("", made.name))
    return await client.get(CRD, Key("", made.name))


async def _release_after_write(client: Client, revision: str) -> None:
    """As the API server: it looks at a definition again when it was changed."""
    async with client.watch(CRD, Query(resource_version=revision)) as events:
        async for event in events:
            if event.object.metadata.get("deletionTimestamp") and event.object.metadata.get("annotations"):
                patch = MergePatch({"metadata": {"finalizers": []}})
                await client.patch(CRD, Key("", event.object.name), patch)
                return


async def test_a_definition_that_is_being_deleted_is_installed_again_when_it_is_gone(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_definition, "_LOOK_SECONDS", 0.01)
    client = server.client()
    first = await _being_deleted(client)
    releasing = asyncio.create_task(_release_after_write(client, first.resource_version))
    await install_definitions(client, [definition(BOAT)])
    await releasing
    found = await client.get(CRD, Key("", first.name))
    assert found.uid != first.uid
    assert established(found)


async def test_a_definition_that_does_not_go_is_named_with_its_finalizers(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_definition, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(app_definition, "REMOVED_SECONDS", 0.2)
    client = server.client()
    made = await _being_deleted(client)
    with pytest.raises(
        DefinitionError, match=r"boats\.harbour\.example\.com is still being deleted .*example\.com/hold"
    ):
        await install_definitions(client, [definition(BOAT)])
    assert (await client.get(CRD, Key("", made.name))).uid == made.uid


async def test_a_definition_that_the_server_refuses_is_named(server: EmbeddedServer) -> None:
    broken = definition(BOAT, schema={"type": "nonsense"})
    with pytest.raises(DefinitionError, match=r"boats\.harbour\.example\.com can't be updated"):
        await install_definitions(server.client(), [broken])


async def test_hooks_of_the_platform_guard_its_kinds(server: EmbeddedServer) -> None:
    def register(hooks: Hooks, environment: Environment) -> None:
        assert environment.server is server
        hooks.add(BOAT, default=lambda obj, old: obj.setdefault("spec", {}).setdefault("sails", 2) and None)

    boats = Component(name="boats", install=_nothing, register=register, definitions=lambda: [definition(BOAT)])
    platform = Platform((boats,))
    client = server.client()
    install_hooks(platform.register(Environment(client, DIRECT, server)), server)
    await install_definitions(client, platform.definitions())
    made = await client.create({**BODY, "metadata": {"name": "b", "namespace": "default"}}, kind=BOAT)
    assert made["spec"] == {"sails": 2}


async def test_controllers_get_the_dial_options(server: EmbeddedServer) -> None:
    seen: list[DialOptions] = []
    platform = Platform((Component(name="acme", install=lambda setup: seen.append(setup.environment.dial)),))
    manager = Manager(server.client(), name="test")
    platform.manage(manager, Environment(server.client(), DialOptions("http://127.0.0.1:1")))
    assert seen == [DialOptions("http://127.0.0.1:1")]


@pytest.mark.parametrize("wide", [False, True])
def test_a_plugin_may_ask_for_its_environment_or_not(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_plugin")
    got: list[tuple[object, ...]] = []
    if wide:
        module.install = lambda manager, environment: got.append((manager, environment))  # type: ignore[attr-defined]
    else:
        module.install = lambda manager: got.append((manager,))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_plugin", module)
    load("acme_plugin:install").install(Setup("the manager", "the environment", ()))  # type: ignore[arg-type]
    assert got == [("the manager", "the environment") if wide else ("the manager",)]
    assert chosen(["acme_plugin:install"]).components[-1].name == "acme_plugin:install"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("acme", "expected MODULE:NAME"),
        ("no_such_module:f", "can't be imported"),
        ("sys:nothing", "has no Component or function"),
    ],
)
def test_a_plugin_that_can_not_be_loaded_is_named(name: str, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        load(name)


def test_a_plugin_may_be_a_component(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_plugin")
    module.COMPONENT = Component(name="acme", install=_nothing)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_plugin", module)
    assert chosen(["acme_plugin:COMPONENT"]).components[-1] is module.COMPONENT


def test_a_plugin_can_not_take_the_name_of_a_component(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_plugin")
    module.COMPONENT = Component(name="nutanix", install=_nothing)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_plugin", module)
    with pytest.raises(PluginError, match="already a component named 'nutanix'"):
        chosen(["acme_plugin:COMPONENT"])


def test_a_component_that_is_left_out_brings_no_kinds_and_no_inventory() -> None:
    rest = chosen(without=["nutanix"])
    assert "nutanix" not in [component.name for component in rest.components]
    assert not any("nutanix" in body["metadata"]["name"] for body in rest.definitions())
    assert "nutanix" not in [listed.name for listed in rest.inventory()]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["nutanx"], "--without nutanx: no such component; components are core, "),
        (["core"], "--without core: component kubeadm-bootstrap requires it"),
    ],
)
def test_a_component_that_can_not_be_left_out_is_named(names: list[str], told: str) -> None:
    with pytest.raises(PluginError, match=told):
        chosen(without=names)


def test_every_requirement_of_a_component_comes_before_it() -> None:
    before: set[str] = set()
    for component in chosen().components:
        assert set(component.requires) <= before, component.name
        before.add(component.name)


def test_components_whose_definitions_are_missing_are_left_out_with_all_that_require_them() -> None:
    names = [c.name for c in chosen().served(["nutanixclusters.infrastructure.cluster.x-k8s.io"]).components]
    assert "nutanix" not in names
    assert "core" in names
    assert chosen().served(["machines.cluster.x-k8s.io"]).components == ()


async def test_each_place_shows_the_controllers_of_its_component(server: EmbeddedServer) -> None:
    platform = chosen()
    await install_definitions(server.client(), platform.definitions())
    shown = platform.install(Manager(server.client(), name="test"), Environment(server.client()))
    assert {"nutanixcluster", "nutanixmachine"} <= set(shown[LogDeployment("capx-system", "capx-controller-manager")])
    assert "machine" in shown[LogDeployment("capi-system", "capi-controller-manager")]
    for place, names in shown.items():
        assert names, place
