"""What hooks do is the same in every world."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from homeport.client.errors import ApiError, Invalid
from homeport.client.protocol import JsonPatch, Key, MergePatch, Query, Write
from homeport.runtime.webhook import authority
from homeport.runtime.webhook.configuration import MUTATING, VALIDATING
from realkube import RealKube, find_binaries, free_port
from unit.runtime.webhook.gadget_sample import GADGET, OLD_GADGET, gadget
from unit.runtime.webhook.given_authority import given_data
from unit.runtime.webhook.hook_world import CRDS, SECRET, World, by_webhook, in_process, on_real, until

_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


@pytest.fixture(scope="module")
def kube() -> Iterator[tuple[RealKube, int]]:
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    with RealKube(found) as started:
        yield started, free_port()


class Hand:
    """A clock that is set by hand, in days from now."""

    def __init__(self, days: float) -> None:
        self._start = time.time()
        self.days = days

    def now(self) -> float:
        return self._start + self.days * 86400

    def monotonic(self) -> float:
        return self.now()


@pytest.fixture(params=["embedded", "real"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "embedded":
            yield await stack.enter_async_context(by_webhook(tmp_path / "webhook"))
        else:
            yield await stack.enter_async_context(on_real(*request.getfixturevalue("kube")))


async def outcome(work: Any) -> Any:
    """An answer without what differs from run to run; of a refusal what a user sees."""
    try:
        answer = orjson.loads(orjson.dumps(await work))
    except ApiError as error:
        status = error.status
        message = re.sub(r'^admission webhook "[^"]+" denied the request: ', "", status["message"])
        return status["code"], status.get("reason"), message, status.get("details")
    for field in _VOLATILE:
        (answer.get("metadata") or {}).pop(field, None)
    if answer.get("kind") == "Status":
        (answer.get("details") or {}).pop("uid", None)
    return answer


async def exercise(client: Any) -> list[Any]:
    """One of everything."""
    made = Key("default", "made")
    seen = [
        await outcome(client.create(gadget("made"), kind=GADGET)),
        await outcome(client.create(gadget("large", replicas=9, colour="red"), kind=GADGET)),
        await outcome(client.create(gadget("old", "v1alpha1", count=4), kind=OLD_GADGET)),
        await outcome(client.create(gadget("old-large", "v1alpha1", count=8), kind=OLD_GADGET)),
        await outcome(client.get(GADGET, Key("default", "old"))),
        await outcome(client.get(OLD_GADGET, made)),
        await outcome(client.patch(GADGET, made, MergePatch({"spec": {"replicas": 7, "colour": "red"}}))),
        await outcome(client.patch(OLD_GADGET, made, MergePatch({"spec": {"count": 2}}))),
        await outcome(client.patch(OLD_GADGET, made, JsonPatch([{"op": "remove", "path": "/spec/count"}]))),
        await outcome(client.apply(gadget("made", colour="green"), Write("other"), kind=GADGET, force=True)),
        await outcome(client.create(gadget("gold", replicas=1, colour="gold"), Write(), kind=GADGET)),
        await outcome(client.delete(GADGET, Key("default", "gold"))),
        await outcome(client.create(gadget("dry"), Write(dry_run=True), kind=GADGET)),
        await outcome(client.create(gadget("idle", replicas=0), kind=GADGET)),
    ]
    listed = await client.list(OLD_GADGET, Query(namespace="default"))
    seen.append([(obj.name, obj["spec"]) for obj in listed.items])
    seen.append([text for text in client.warnings.texts if "zero of them" in text])
    return seen


async def clean(client: Any) -> None:
    for name in ("made", "old", "idle"):
        with contextlib.suppress(ApiError):
            await client.delete(GADGET, Key("default", name))


async def test_in_process_and_by_webhook_the_same_happens(world: World, tmp_path: Path) -> None:
    async with in_process(tmp_path / "process") as other:
        expected = await exercise(other.client)
    got = await exercise(world.client)
    await clean(world.client)
    assert got == expected
    assert expected[0]["spec"] == {"replicas": 3, "colour": "blue"}
    assert expected[1][:2] == (422, "Invalid")
    assert expected[2]["spec"] == {"count": 4, "colour": "blue"}
    assert [cause["field"] for cause in expected[6][3]["causes"]] == ["spec.replicas", "spec.colour"]
    assert expected[8]["spec"]["count"] == 2, "what was taken away came back from the old state"
    assert expected[11][:2] == (422, "Invalid")
    assert expected[15] == ["spec.replicas: zero of them do nothing"]


async def test_a_refusal_by_webhook_names_field_and_cause(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        await world.client.create(gadget("large", replicas=9), kind=GADGET)
    (cause,) = refused.value.causes
    assert (cause.reason, cause.field) == ("FieldValueInvalid", "spec.replicas")
    assert 'admission webhook "validate.gadgets.hook.homeport.test.homeport.dev" denied' in str(refused.value)


async def test_an_object_that_can_not_be_converted_is_refused(world: World) -> None:
    with pytest.raises(ApiError, match=r"ninety-nine can't be converted") as refused:
        await world.client.create(gadget("ninety", "v1alpha1", count=99), kind=OLD_GADGET)
    assert refused.value.http_code == 500


async def test_a_deleted_secret_is_written_again_and_no_request_fails(world: World) -> None:
    webhooks = world.webhooks
    assert webhooks is not None
    leaf, bundle = webhooks.leaf, webhooks.bundle
    await world.client.delete(authority.SECRET, SECRET)

    async def back() -> bool:
        held = await outcome(world.client.get(authority.SECRET, SECRET))
        return isinstance(held, dict) and authority.parse_authority(held["data"]).bundle == bundle

    await until(back, "the CA that API servers trust is in the Secret again")
    assert webhooks.leaf == leaf
    made = await outcome(world.client.create(gadget("again"), Write(dry_run=True), kind=GADGET))
    assert isinstance(made, dict), made


async def test_a_ca_that_somebody_changes_is_put_back(world: World) -> None:
    held = await world.client.get(VALIDATING, Key("", "homeport"))
    good = held["webhooks"][0]["clientConfig"]["caBundle"]
    patch = JsonPatch([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}])
    await world.client.patch(VALIDATING, Key("", "homeport"), patch)
    drop = JsonPatch([{"op": "remove", "path": "/spec/conversion/webhook/clientConfig/caBundle"}])
    await world.client.patch(CRDS, Key("", "gadgets.hook.homeport.test"), drop)

    async def back() -> bool:
        validating = await world.client.get(VALIDATING, Key("", "homeport"))
        crd = await world.client.get(CRDS, Key("", "gadgets.hook.homeport.test"))
        client = crd["spec"]["conversion"]["webhook"]["clientConfig"]
        return bool(
            validating["webhooks"][0]["clientConfig"].get("caBundle") == good and client.get("caBundle") == good
        )

    await until(back, "the CA is injected again")


async def test_a_settled_world_is_not_written_to(world: World) -> None:
    async def versions() -> list[str]:
        targets = ((MUTATING, "homeport"), (VALIDATING, "homeport"), (CRDS, "gadgets.hook.homeport.test"))
        found = [await world.client.get(kind, Key("", name)) for kind, name in targets]
        found.append(await world.client.get(authority.SECRET, SECRET))
        return [obj.resource_version for obj in found]

    assert world.webhooks is not None
    before = await versions()
    world.webhooks.check()
    await outcome(world.client.create(gadget("dry"), Write(dry_run=True), kind=GADGET))
    assert await versions() == before


@pytest.mark.parametrize("where", ["embedded", "real"])
async def test_certificate_and_ca_change_without_a_failed_request(
    where: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    clock, lifetime = Hand(-90), authority.Lifetime(ca_days=100, overlap_days=1, leaf_days=95)
    async with contextlib.AsyncExitStack() as stack:
        if where == "embedded":
            world = await stack.enter_async_context(by_webhook(tmp_path, clock=clock, lifetime=lifetime))
        else:
            kube, port = request.getfixturevalue("kube")
            await _forget_secret(kube)
            world = await stack.enter_async_context(on_real(kube, port, clock=clock, lifetime=lifetime))
        await _rotate(world, clock)


async def _forget_secret(kube: RealKube) -> None:
    await asyncio.to_thread(kube.request, f"/api/v1/namespaces/default/secrets/{SECRET.name}", "DELETE")


class Asking:
    """Sends requests one after the other while it is open, and counts those that fail."""

    def __init__(self, world: World) -> None:
        assert world.webhooks is not None
        self._world, self._webhooks = world, world.webhooks
        self._answered = 0
        self.failures: list[Any] = []

    async def __aenter__(self) -> Asking:
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _ask(self) -> None:
        while True:
            made = await outcome(self._world.client.create(gadget("ask"), Write(dry_run=True), kind=GADGET))
            if not isinstance(made, dict):
                self.failures.append(made)
            self._answered += 1

    async def another_certificate(self, before: object, when: str) -> None:
        seen = self._answered

        async def settled() -> bool:
            changed = self._webhooks.leaf != before and not self._webhooks.unready
            return changed and self._answered >= seen + 20

        await until(settled, f"another certificate {when}")


async def _rotate(world: World, clock: Hand) -> None:
    webhooks = world.webhooks
    assert webhooks is not None
    async with Asking(world) as asking:

        async def move_to(days: float) -> None:
            before = webhooks.leaf
            clock.days = days
            webhooks.check()
            await asking.another_certificate(before, f"on day {days}")

        first = webhooks.leaf
        await move_to(-9)  # a fifth of the CA's life is left: its successor waits
        middle = webhooks.leaf
        assert first is not None
        assert middle is not None
        assert middle.issuer == first.issuer
        await move_to(-7)  # and signs
    assert asking.failures == []
    held = await world.client.get(authority.SECRET, SECRET)
    assert len(authority.parse_authority(held["data"]).trusted) == 1


async def test_a_certificate_is_renewed_within_seconds_after_the_clock_jumped(tmp_path: Path) -> None:
    """As on a machine that was suspended for months: nobody restarts the replica, and nobody touches the Secret."""
    clock = Hand(-88)
    async with by_webhook(tmp_path, clock=clock) as world:
        webhooks = world.webhooks
        assert webhooks is not None
        async with Asking(world) as asking:
            before = webhooks.leaf
            clock.days = 0
            await asking.another_certificate(before, "two days before its end")
        assert asking.failures == []


async def test_an_api_server_whose_clock_is_behind_accepts_new_certificates(tmp_path: Path) -> None:
    """Half a day, as if one of the two had taken local time for UTC."""
    async with by_webhook(tmp_path, clock=Hand(0.5)) as world:
        made = await outcome(world.client.create(gadget("early"), Write(dry_run=True), kind=GADGET))
        assert isinstance(made, dict), made


@pytest.mark.parametrize("where", ["embedded", "real"])
async def test_a_ca_that_others_issue_is_renewed_by_them_without_a_failed_request(
    where: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """As with a Certificate of cert-manager that a CA Issuer signs."""
    root = trustme.CA()
    async with contextlib.AsyncExitStack() as stack:
        if where == "embedded":
            world = await stack.enter_async_context(by_webhook(tmp_path))
        else:
            world = await stack.enter_async_context(on_real(*request.getfixturevalue("kube")))
        webhooks = world.webhooks
        assert webhooks is not None
        before = webhooks.leaf
        await _issue(world, root)
        await until(partial(_changed, world, before), "the given CA signs")
        async with Asking(world) as asking:
            before = webhooks.leaf
            await _issue(world, root)
            await asking.another_certificate(before, "after the CA was renewed")
        assert asking.failures == []
        await world.client.delete(authority.SECRET, SECRET)  # and back to a CA of our own
        await until(partial(_changed, world, webhooks.leaf), "a CA of our own signs")


async def _issue(world: World, root: trustme.CA) -> None:
    secret = await world.client.get(authority.SECRET, SECRET)
    secret["data"] = {**secret["data"], **given_data(root, root.create_child_ca())}
    await world.client.replace(secret, kind=authority.SECRET)


async def _changed(world: World, before: object) -> bool:
    assert world.webhooks is not None
    if world.webhooks.leaf == before or world.webhooks.unready:
        return False
    return isinstance(await outcome(world.client.create(gadget("new"), Write(dry_run=True), kind=GADGET)), dict)
