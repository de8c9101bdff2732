"""What a browser is sent while things change: at once after a quiet time, gathered in a storm, and nothing of what its
user may not see."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from homeport.api.meta import Resource
from homeport.client.protocol import Client, Key, MergePatch
from homeport.dashboard.topic.base import GATHER_SECONDS, MOMENT_SECONDS, pause
from unit.dashboard.stage import BINDING, BINDINGS, Stage, open_stage, receive, sailor

GROUP = "cluster.x-k8s.io"
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
KINDS = {
    kind: Resource(GROUP, "v1beta2", kind, f"{kind.lower()}s")
    for kind in ("Cluster", "MachineDeployment", "MachineSet", "Machine")
}
TREE = {"open": "tree", "with": {"kind": "Cluster", "namespace": "default", "name": "big"}}


def definition(kind: Resource) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    return {
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def create(client: Client, kind: str, name: str, owner: Any = None, **content: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": f"{GROUP}/v1beta2", "kind": owner["kind"], "name": owner.name, "uid": owner.uid}
        ]
    return await client.create({"metadata": metadata, **content}, kind=KINDS[kind])


def said(ready: bool, message: str = "") -> dict[str, Any]:
    status = "True" if ready else "False"
    return {"conditions": [{"type": "Ready", "status": status, "reason": "Broken", "message": message}]}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """One Cluster with twenty Machines."""
    async with open_stage(tmp_path) as made:
        for kind in KINDS.values():
            await made.client.create(definition(kind), kind=CRDS)
        cluster = await create(made.client, "Cluster", "big")
        deployment = await create(made.client, "MachineDeployment", "workers", cluster, spec={"replicas": 20})
        machine_set = await create(made.client, "MachineSet", "workers", deployment)
        for number in range(20):
            await create(made.client, "Machine", f"m{number:02d}", machine_set, status=said(True))
        yield made


async def until(socket: aiohttp.ClientWebSocketResponse, number: int, text: str) -> int:
    """Gives how many messages came until one had the text."""
    count = 1
    while text not in json.dumps(await receive(socket, number)):
        count += 1
    return count


@pytest.mark.parametrize(
    ("quiet", "rest", "expected"),
    [
        (math.inf, -1.0, MOMENT_SECONDS),
        (5.0, -1.0, MOMENT_SECONDS),
        (GATHER_SECONDS / 4, -1.0, GATHER_SECONDS * 3 / 4),
        (0.0, 0.02, GATHER_SECONDS),
        (0.0, 2.0, 2.0),
    ],
)
def test_the_first_change_after_a_quiet_time_is_sent_at_once_and_the_next_ones_are_gathered(
    quiet: float, rest: float, expected: float
) -> None:
    assert pause(quiet, GATHER_SECONDS, rest) == expected


async def test_front_page_and_tree_follow_a_machine(stage: Stage) -> None:
    front, page = await stage.connect(), await stage.connect()
    await front.send_json({"id": 1, "open": "overview", "with": {}})
    await page.send_json({"id": 1, **TREE})
    await until(front, 1, '"machines": 20, "ready": 20')
    await until(page, 1, '"20 Machines"')
    await stage.client.patch(KINDS["Machine"], Key("default", "m07"), MergePatch({"status": said(False, "no image")}))
    await until(front, 1, "MachineDeployment workers: machine m07: no image")
    await until(page, 1, '"m07"')
    await stage.client.delete(KINDS["Machine"], Key("default", "m07"))
    await until(front, 1, '"machines": 19, "ready": 19')
    await until(page, 1, '"19 Machines"')
    await front.close()
    await page.close()


async def test_a_tree_is_sent_again_only_if_something_in_it_looks_different(stage: Stage) -> None:
    socket = await stage.connect()
    await socket.send_json({"id": 1, **TREE})
    await until(socket, 1, '"20 Machines"')
    for number in range(20):
        change = MergePatch({"status": said(True, f"checked {number} times")})
        await stage.client.patch(KINDS["Machine"], Key("default", f"m{number:02d}"), change)
    await stage.client.patch(
        KINDS["MachineDeployment"], Key("default", "workers"), MergePatch({"status": {"readyReplicas": 7}})
    )
    assert await until(socket, 1, "7 of 20") == 1
    await socket.close()


async def test_a_page_that_comes_back_shows_what_happened_meanwhile(stage: Stage) -> None:
    socket = await stage.connect()
    await socket.send_json({"id": 1, **TREE})
    await until(socket, 1, '"20 Machines"')
    await socket.send_json({"id": 1, "close": True})
    await stage.client.delete(KINDS["Machine"], Key("default", "m03"))
    await socket.send_json({"id": 2, **TREE})
    await until(socket, 2, '"19 Machines"')
    await stage.client.delete(KINDS["Cluster"], Key("default", "big"))
    await until(socket, 2, '"tree": null')
    await create(stage.client, "Cluster", "big")
    await until(socket, 2, '"name": "big"')
    await socket.close()


async def test_a_tree_that_needs_too_many_watches_says_so_and_can_be_opened_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await stage.connect()
    with monkeypatch.context() as patch:
        patch.setattr("homeport.dashboard.person.MOST_FEEDS", 3)
        await socket.send_json({"id": 1, **TREE})
        await until(socket, 1, "this session already watches 3 kinds: close some pages")
    await socket.send_json({"id": 2, **TREE})
    await until(socket, 2, '"20 Machines"')
    await socket.close()


async def test_feeds_that_only_linger_make_room_for_those_of_the_next_page(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user of several namespaces looks at one after the other."""
    monkeypatch.setattr("homeport.dashboard.person.MOST_FEEDS", len(KINDS))
    socket = await stage.connect()
    for number, namespace in enumerate(("default", "kube-system", "default", "kube-public")):
        await socket.send_json({"id": number, "open": "overview", "with": {"namespace": namespace}})
        while (message := await receive(socket, number)).get("reading"):
            pass
        assert [each["name"] for each in message["clusters"]] == (["big"] if namespace == "default" else [])
        await socket.send_json({"id": number, "close": True})
    await socket.close()


async def test_a_tree_that_failed_keeps_no_watch(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.dashboard.person.MOST_FEEDS", 1)
    socket = await stage.connect()
    await socket.send_json({"id": 1, **TREE})
    await until(socket, 1, "this session already watches 1 kinds")
    rows = {"group": "", "plural": "configmaps", "namespace": "default", "columns": []}
    await socket.send_json({"id": 2, "open": "rows", "with": rows})
    assert (await receive(socket, 2)).get("first") is True
    await socket.close()


LOCAL = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")


async def test_a_tree_follows_the_namespace_alone_when_the_right_to_all_of_them_goes(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeport.dashboard.right.CHECK_SECONDS", 0.05)
    await stage.client.create(
        {**BINDING, "kind": "RoleBinding", "metadata": {"name": "sailor", "namespace": "default"}}, kind=LOCAL
    )
    socket = await (await sailor(stage, tmp_path)).connect()
    await socket.send_json({"id": 1, **TREE})
    await until(socket, 1, '"20 Machines"')
    await stage.client.delete(BINDINGS, Key("", "sailor"))
    await stage.client.delete(KINDS["Machine"], Key("default", "m03"))
    while (message := await receive(socket, 1))["tree"] is None or "19 Machines" not in json.dumps(message):
        pass
    assert (message["problem"], message["unreadable"]) == ("", [])
    await stage.client.create(BINDING, kind=BINDINGS)
    await stage.client.delete(LOCAL, Key("default", "sailor"))
    await stage.client.delete(KINDS["Machine"], Key("default", "m04"))
    while (message := await receive(socket, 1))["tree"] is None or "18 Machines" not in json.dumps(message):
        pass
    assert (message["problem"], message["unreadable"]) == ("", [])
    await socket.close()
