"""Rights of open subscriptions: a change of roles is noticed within seconds, and costs little while there is none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.kinds.pod.log import LogBuffer
from homeport.client.errors import Forbidden, Unauthorized, Unavailable
from homeport.client.protocol import Client, Key, MergePatch
from homeport.dashboard.right import Rights
from homeport.runtime.permission import Need
from unit.dashboard.stage import Stage, open_stage, receive, sailor

PODS, MACHINES = Resource("", "v1", "Pod", "pods"), Resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines")
VIEW = {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}
DISCOVER = {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"]}


@dataclass
class Authorizers:
    """Those of an API server, for one user: RBAC, and a webhook that may deny what RBAC allows."""

    rules: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by namespace; '-': everywhere
    incomplete: bool = False
    webhook_denies: set[str] = field(default_factory=set)  # plural names
    fails: Exception | None = None
    answered: Counter[str] = field(default_factory=Counter)
    _turn: int = 0
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, body: Mapping[str, Any], *, kind: Resource) -> Unstructured:
        await asyncio.sleep(0)  # as any server, it takes a moment
        self.answered[kind.kind] += 1
        self._asked.set()
        if self.fails is not None:
            raise self.fails
        asked = body["spec"]
        if kind.kind == "SelfSubjectRulesReview":
            self._turn += 1  # kube-apiserver reads bindings from a map, which has no order
            found = [DISCOVER, *self._rules(asked["namespace"])]
            rules = found if self._turn % 2 else found[::-1]
            return Unstructured({"status": {"resourceRules": rules, "incomplete": self.incomplete}})
        wanted = asked["resourceAttributes"]
        granted = any("watch" in rule["verbs"] for rule in self._rules(wanted["namespace"] or "-"))
        return Unstructured({"status": {"allowed": granted and wanted["resource"] not in self.webhook_denies}})

    def _rules(self, namespace: str) -> list[dict[str, Any]]:
        return [*self.rules.get("-", ()), *(self.rules.get(namespace, ()) if namespace != "-" else ())]

    async def looked(self, times: int = 3) -> None:
        """Waits until the rules were read some more times."""
        until = self.answered["SelfSubjectRulesReview"] + times
        async with asyncio.timeout(30):
            while self.answered["SelfSubjectRulesReview"] < until:
                self._asked.clear()
                await self._asked.wait()


@dataclass
class Watcher:
    """Depends on some rights."""

    rights: Rights
    may: dict[tuple[str, str], bool] = field(default_factory=dict)
    rejected: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    def watch(self, resource: Resource, namespace: str) -> None:
        place = (resource.plural, namespace)

        def told(allowed: bool) -> None:
            self.may[place] = allowed
            self._told.set()

        self.rights.hold(Need(("watch",), resource, namespace), told)

    async def becomes(self, **expected: bool) -> None:
        """By namespace, of pods."""
        async with asyncio.timeout(30):
            while {where: self.may.get(("pods", where)) for where in expected} != expected:
                self._told.clear()
                await self._told.wait()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.dashboard.right.CHECK_SECONDS", 0.01)
    monkeypatch.setattr("homeport.dashboard.right.SHORTEST_SECONDS", 0.005)


@asynccontextmanager
async def watching(authorizers: Authorizers, *namespaces: str) -> AsyncIterator[Watcher]:
    """Pods of the namespaces."""
    rejected = asyncio.Event()
    watcher = Watcher(Rights(cast(Client, authorizers), rejected.set), rejected=rejected)
    for each in namespaces:
        watcher.watch(PODS, each)
    task = asyncio.create_task(watcher.rights.run())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_right_that_rules_take_away_and_give_back_is_told() -> None:
    server = Authorizers({"quay": [VIEW]})
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.rules = {}
        await watcher.becomes(quay=False)
        server.rules = {"-": [VIEW]}
        await watcher.becomes(quay=True)


async def test_while_the_rules_stay_the_same_no_right_is_asked_for_singly() -> None:
    server = Authorizers({"-": [VIEW]})
    async with watching(server, "") as watcher:
        watcher.watch(MACHINES, "")
        await server.looked(10)
        assert watcher.may == {("pods", ""): True, ("machines", ""): True}
        assert server.answered["SelfSubjectAccessReview"] == 0


async def test_a_right_that_the_rules_do_not_show_is_asked_for_once() -> None:
    server = Authorizers()
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=False)
        await server.looked(10)
        assert server.answered["SelfSubjectAccessReview"] == 1


async def test_a_binding_of_one_namespace_concerns_that_namespace_alone() -> None:
    server = Authorizers({"quay": [VIEW], "pier": [VIEW]})
    async with watching(server, "quay", "pier", "") as watcher:
        await watcher.becomes(quay=True, pier=True)
        assert watcher.may["pods", ""] is False
        del server.rules["pier"]
        await watcher.becomes(pier=False)
        assert (watcher.may["pods", "quay"], watcher.may["pods", ""]) == (True, False)


async def test_incomplete_rules_do_not_prove_that_a_right_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.dashboard.right.DOUBT_SECONDS", 0.05)
    server = Authorizers({"quay": [VIEW]}, incomplete=True)
    async with watching(server, "quay") as watcher:
        watcher.watch(MACHINES, "quay")
        await watcher.becomes(quay=True)
        server.webhook_denies = {"pods"}  # the rules stay the same
        await watcher.becomes(quay=False)
        assert watcher.may["machines", "quay"] is True
        server.webhook_denies = set()
        await watcher.becomes(quay=True)


async def test_incomplete_rules_that_change_are_a_reason_to_ask_at_once() -> None:
    server = Authorizers({"quay": [VIEW]}, incomplete=True)
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.rules = {}
        await watcher.becomes(quay=False)


async def test_a_server_that_refuses_to_show_rules_is_asked_for_each_right(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Authorizers):
        async def create(self, body: Mapping[str, Any], *, kind: Resource) -> Unstructured:
            if kind.kind == "SelfSubjectRulesReview":
                raise Forbidden("no rules for you")
            return await super().create(body, kind=kind)

    monkeypatch.setattr("homeport.dashboard.right.DOUBT_SECONDS", 0.02)
    server = Silent({"quay": [VIEW]})
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.rules = {}
        await watcher.becomes(quay=False)


async def test_a_user_who_may_no_longer_ask_for_rights_has_none() -> None:
    """An authorizer denies a blocked user everything, these questions included."""
    server = Authorizers({"quay": [VIEW]})
    async with watching(server, "quay", "pier") as watcher:
        await watcher.becomes(quay=True, pier=False)
        server.fails = Forbidden("you are blocked")
        await watcher.becomes(quay=False)
        await server.looked(10)
        assert watcher.may == {("pods", "quay"): False, ("pods", "pier"): False}
        server.fails = None
        await watcher.becomes(quay=True, pier=False)


async def test_a_server_that_never_answered_such_questions_takes_no_right_away() -> None:
    server = Authorizers(fails=Forbidden("no reviews here"))
    async with watching(server, "quay") as watcher:
        await server.looked(10)
        assert False not in watcher.may.values()


async def test_a_namespace_whose_rules_take_long_does_not_hold_up_the_others() -> None:
    class Stuck(Authorizers):
        async def create(self, body: Mapping[str, Any], *, kind: Resource) -> Unstructured:
            if body["spec"].get("namespace") == "pier":
                await asyncio.Event().wait()
            return await super().create(body, kind=kind)

    server = Stuck({"quay": [VIEW], "pier": [VIEW]})
    async with watching(server, "quay", "pier") as watcher:
        await watcher.becomes(quay=True)
        server.rules = {}
        await watcher.becomes(quay=False)


async def test_whatever_rules_say_each_right_is_asked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.dashboard.right.RENEWAL_SECONDS", 0.05)
    server = Authorizers({"quay": [VIEW]})
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.webhook_denies = {"pods"}
        await watcher.becomes(quay=False)


@pytest.mark.parametrize("failure", [Unavailable("no connection"), ValueError("an answer that makes no sense")])
async def test_a_server_that_gives_no_answer_takes_no_right_away(failure: Exception) -> None:
    server = Authorizers({"quay": [VIEW]})
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.fails, server.rules = failure, {}
        await server.looked()
        assert watcher.may["pods", "quay"] is True
        assert not watcher.rejected.is_set()
        server.fails = None
        await watcher.becomes(quay=False)  # it is asked again when it is back


async def test_a_credential_that_is_no_longer_accepted_is_reported() -> None:
    server = Authorizers({"quay": [VIEW]})
    async with watching(server, "quay") as watcher:
        await watcher.becomes(quay=True)
        server.fails = Unauthorized("Unauthorized")
        async with asyncio.timeout(30):
            await watcher.rejected.wait()


async def test_who_watches_nothing_asks_nothing() -> None:
    server, other = Authorizers({"quay": [VIEW]}), Authorizers()
    async with watching(server) as watcher, watching(other, "quay"):
        await other.looked()
        assert not server.answered
        watcher.watch(PODS, "quay")
        await watcher.becomes(quay=True)


# -- in the page -----------------------------------------------------------------------------------------------------

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
LOCAL = Resource(RBAC, "v1", "RoleBinding", "rolebindings")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
CONTAINER = {"name": "crane", "image": "registry.example/crane:1"}
ROLE = {"metadata": {"name": "deck"}, "rules": [VIEW]}


def rows(namespace: str) -> dict[str, Any]:
    return {"open": "rows", "with": {"group": "", "plural": "configmaps", "namespace": namespace, "columns": []}}


def bound(namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "deck", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "deck"},
        "subjects": [{"kind": "ServiceAccount", "name": "sailor", "namespace": "default"}],
    }


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """With two namespaces that have a ConfigMap each, and a role that nobody has."""
    async with open_stage(tmp_path) as made:
        await made.client.create(ROLE, kind=ROLES)
        for name in ("quay", "pier"):
            await made.client.create({"metadata": {"name": name}}, kind=NAMESPACES)
            await made.client.create({"metadata": {"name": "cargo", "namespace": name}}, kind=CONFIGMAPS)
        yield made


def names(message: dict[str, Any]) -> list[str]:
    return [row[2] for row in message["rows"]]


async def test_a_role_that_is_given_fills_the_table_and_one_that_is_taken_away_empties_it(
    stage: Stage, tmp_path: Path
) -> None:
    socket = await (await sailor(stage, tmp_path, bound=False)).connect()
    await socket.send_json({"id": 1, **rows("quay")})
    while (message := await receive(socket, 1))["problem"] != "you may not watch configmaps in namespace quay":
        assert message["problem"]
    await stage.client.create(bound("quay"), kind=LOCAL)
    while "cargo" not in names(message := await receive(socket, 1)):
        pass
    cargo = next(row[0] for row in message["rows"] if row[2] == "cargo")
    await stage.client.patch(ROLES, Key("", "deck"), MergePatch({"rules": []}))
    while cargo not in (message := await receive(socket, 1))["gone"]:
        pass
    assert message["problem"] == "you may not watch configmaps in namespace quay"
    await stage.client.create({"metadata": {"name": "secret", "namespace": "quay"}}, kind=CONFIGMAPS)
    await stage.client.patch(ROLES, Key("", "deck"), MergePatch({"rules": [VIEW]}))
    message = await receive(socket, 1)  # nothing was sent meanwhile
    assert {"cargo", "secret"} <= set(names(message)), message
    await socket.close()


async def test_a_table_of_another_namespace_stays_when_one_binding_goes(stage: Stage, tmp_path: Path) -> None:
    for name in ("quay", "pier"):
        await stage.client.create(bound(name), kind=LOCAL)
    socket = await (await sailor(stage, tmp_path, bound=False)).connect()
    await socket.send_json({"id": 1, **rows("quay")})
    await socket.send_json({"id": 2, **rows("pier")})
    assert "cargo" in names(await receive(socket, 1))
    await stage.client.delete(LOCAL, Key("quay", "deck"))
    assert (await receive(socket, 1))["problem"] == "you may not watch configmaps in namespace quay"
    await stage.client.create({"metadata": {"name": "more", "namespace": "pier"}}, kind=CONFIGMAPS)
    await socket.send_json({"id": 3, **rows("pier")})
    assert {"cargo", "more"} <= set(names(await receive(socket, 3)))
    await socket.close()


async def test_a_log_that_is_followed_ends_with_the_right_to_read_it(stage: Stage, tmp_path: Path) -> None:
    pod = {"metadata": {"name": "crane", "namespace": "quay"}, "spec": {"nodeName": "n", "containers": [CONTAINER]}}
    await stage.client.create(pod, kind=PODS)
    log = LogBuffer()
    stage.logs.register("quay", "crane", "crane", log)
    await stage.client.create(bound("quay"), kind=LOCAL)
    socket = await (await sailor(stage, tmp_path, bound=False)).connect()
    await socket.send_json({"id": 1, "open": "log", "with": {"namespace": "quay", "pod": "crane"}})
    log.write("one")
    assert (await receive(socket, 1))["lines"] == ["one"]
    await stage.client.delete(LOCAL, Key("quay", "deck"))
    message = await receive(socket, 1)
    assert message.get("error") == "you may no longer read the log of Pod quay/crane"
    log.write("two")
    await socket.send_json({"id": 2, **rows("pier")})
    assert (await socket.receive_json(timeout=30))["id"] == 2
    await socket.close()
