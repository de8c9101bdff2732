"""Which user wrote which object: kept over restarts, and shown to those who may read the object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from homeport.api.change import Change
from homeport.api.meta import Resource
from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.request import Context, User
from homeport.apiserver.trail import MOST_SHOWN, Trail
from homeport.client.config import Impersonation
from homeport.client.credential import Static
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, MergePatch, Write

MAPS = ("", "configmaps", "")
ANNA = Context(User("anna"), user_agent="kubectl/v1.33 (linux)", wrote=True)


def everything(asked: Attributes) -> bool:
    return True


def seen(trail: Trail) -> list[Change]:
    return trail.visible(everything, User("x"))


def test_a_restart_goes_on_from_the_file_and_forgives_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "changes.log"
    first = Trail(path, lambda: 1_800_000_000.5, str.upper)
    first.note(ANNA, "create", MAPS, "default", "a")
    first.close()
    with path.open("ab") as file:
        file.write(b'{"verb": "delete", "objectRef": {"na')
    second = Trail(path, lambda: 1_800_000_001.5, str.upper)
    second.note(replace(ANNA, field_manager="editor"), "patch", MAPS, "default", "a")
    assert [(each.user, each.verb, each.manager) for each in seen(second)] == [
        ("anna", "patch", "editor"),
        ("anna", "create", "kubectl"),
    ]
    assert seen(second)[1].time == 1_800_000_000.5
    second.close()
    third = Trail(path, lambda: 1_800_000_002.5, str.upper)
    assert [each.verb for each in seen(third)] == ["patch", "create"]
    third.close()


def test_the_plane_itself_what_stores_nothing_and_what_programs_write_all_the_time_are_left_out(tmp_path: Path) -> None:
    trail = Trail(tmp_path / "changes.log", lambda: 0.0, str.upper)
    trail.note(replace(ANNA, wrote=False), "create", MAPS, "default", "a")
    trail.note(Context(User("system:homeport"), wrote=True), "create", MAPS, "default", "a")
    trail.note(ANNA, "create", ("", "events", ""), "default", "a")
    trail.note(ANNA, "patch", ("apps", "deployments", "status"), "default", "a")
    assert seen(trail) == []
    trail.note(Context(User("system:serviceaccount:ci:robot"), wrote=True), "create", MAPS, "default", "a")
    assert [each.user for each in seen(trail)] == ["system:serviceaccount:ci:robot"]
    trail.close()


def test_who_impersonates_somebody_is_named_also_behind_a_name_of_the_plane(tmp_path: Path) -> None:
    trail = Trail(tmp_path / "changes.log", lambda: 0.0, str.upper)
    for name in ("anna", "system:homeport"):
        trail.note(Context(User(name), wrote=True), "delete", MAPS, "default", "a", User("mallory"))
    assert [each.user for each in seen(trail)] == [
        "system:homeport, impersonated by mallory",
        "anna, impersonated by mallory",
    ]
    trail.close()


def test_a_timeline_gets_the_newest(tmp_path: Path) -> None:
    trail = Trail(tmp_path / "changes.log", lambda: 0.0, str.upper)
    for number in range(MOST_SHOWN + 1):
        trail.note(ANNA, "create", MAPS, "default", f"a-{number}")
    assert len(seen(trail)) == MOST_SHOWN
    assert seen(trail)[0].name == f"a-{MOST_SHOWN}"
    trail.close()


async def test_the_server_answers_with_writes_to_what_the_user_may_read(tmp_path: Path) -> None:
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"), trail=tmp_path / "changes.log")
    server.pki.write_kubeconfig(tmp_path / "config", await server.serve())
    config = load(tmp_path / "config")
    maps = Resource("", "v1", "ConfigMap", "configmaps")
    async with HttpClient(config) as admin, HttpClient(replace(config, credential=Static())) as stranger:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}
        made = await admin.create(body, Write(field_manager="me"), kind=maps)
        await admin.delete(maps, Key("default", made.name))
        found = (await admin.raw("GET", "/homeport/changes?namespace=default")).json()
        assert [(each["verb"], each["name"]) for each in found] == [("delete", made.name), ("create", made.name)]
        assert found[1]["manager"] == "me"
        assert found[1]["user"]
        assert (await admin.raw("GET", "/homeport/changes?namespace=other")).json() == []
        assert (await stranger.raw("GET", "/homeport/changes")).json() == []
    await server.close()


async def test_a_user_learns_of_writes_to_readable_objects_alone_and_of_none_after_the_right_is_gone(
    tmp_path: Path,
) -> None:
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"), trail=tmp_path / "changes.log")
    server.pki.write_kubeconfig(tmp_path / "config", await server.serve())
    config = load(tmp_path / "config")
    group = "rbac.authorization.k8s.io"
    roles, bindings = (Resource(group, "v1", kind, f"{kind.lower()}s") for kind in ("Role", "RoleBinding"))
    maps, secrets = (Resource("", "v1", kind, f"{kind.lower()}s") for kind in ("ConfigMap", "Secret"))
    jane = replace(config, impersonate=Impersonation("jane"))

    def body(kind: Resource, name: str, namespace: str, **more: object) -> dict[str, object]:
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}

    async with HttpClient(config) as admin, HttpClient(jane) as hers:
        rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["shown"]}
        await admin.create(body(roles, "jane", "default", rules=[rule]), kind=roles)
        bound = {
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "jane"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
        }
        await admin.create(body(bindings, "jane", "default", **bound), kind=bindings)
        for kind, name, namespace in (
            (maps, "shown", "default"),
            (maps, "hidden", "default"),
            (maps, "shown", "kube-public"),
            (secrets, "shown", "default"),
        ):
            await admin.create(body(kind, name, namespace), kind=kind)
        for query in ("", "?namespace=default"):
            found = (await hers.raw("GET", f"/homeport/changes{query}")).json()
            assert [(each["resource"], each["namespace"], each["name"]) for each in found] == [
                ("configmaps", "default", "shown")
            ]
        assert (await hers.raw("GET", "/homeport/changes?namespace=kube-public")).json() == []
        await admin.delete(bindings, Key("default", "jane"))
        assert (await hers.raw("GET", "/homeport/changes")).json() == []
    await server.close()


def test_a_new_namespace_of_the_same_name_is_not_the_old_one_also_after_a_restart(tmp_path: Path) -> None:
    path, uids = tmp_path / "changes.log", {"team": "old"}

    def uid_of(namespace: str) -> str:
        return uids.get(namespace, "")

    def in_team(asked: Attributes) -> bool:
        return asked.namespace == "team"

    first = Trail(path, lambda: 0.0, uid_of)
    first.note(ANNA, "create", MAPS, "team", "a")
    assert [each.name for each in first.visible(in_team, User("anna"))] == ["a"]
    del uids["team"]
    assert first.visible(in_team, User("anna")) == []
    first.close()
    uids["team"] = "new"
    second = Trail(path, lambda: 1.0, uid_of)
    second.note(ANNA, "create", MAPS, "team", "b")
    for namespace in ("", "team"):
        assert [each.name for each in second.visible(in_team, User("zoe"), namespace)] == ["b"]
        assert [each.name for each in second.visible(everything, User("admin"), namespace)] == ["b", "a"]
    second.close()


async def test_a_write_that_changes_nothing_is_in_no_timeline(tmp_path: Path) -> None:
    server = await EmbeddedServer.open(None, PKI.ensure(tmp_path / "pki"), trail=tmp_path / "changes.log")
    server.pki.write_kubeconfig(tmp_path / "config", await server.serve())
    maps, name = Resource("", "v1", "ConfigMap", "configmaps"), Key("default", "a")
    held = {"name": "a", "namespace": "default", "finalizers": ["example.com/held"]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held, "data": {"x": "1"}}
    async with HttpClient(load(tmp_path / "config")) as admin:

        async def told() -> list[str]:
            return [each["verb"] for each in (await admin.raw("GET", "/homeport/changes?namespace=default")).json()]

        await admin.create(body, kind=maps)
        await admin.replace(await admin.get(maps, name), kind=maps)
        await admin.patch(maps, name, MergePatch({"data": {"x": "1"}}))
        for _ in range(2):
            await admin.apply(body, Write(field_manager="me"), kind=maps, force=True)
        assert await told() == ["patch", "create"]  # the first apply has an owner of the fields to record
        for _ in range(2):
            await admin.delete(maps, name)  # held by its finalizer
        await admin.patch(maps, name, MergePatch({"metadata": {"finalizers": None}}))
        assert await told() == ["patch", "delete", "patch", "create"]
    await server.close()
