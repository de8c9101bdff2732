from __future__ import annotations

import base64

from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import rfc3339, rfc3339_micro
from homeport.runtime.lease import LEASE
from homeport.runtime.shard import GROUP_LABEL
from scenario.builtin.plane import EVENT, SECRET, OnPlane, Plane


async def _event(plane: Plane, name: str) -> None:
    now = rfc3339(plane.clock.now())
    involved = {"kind": "ConfigMap", "name": "c", "namespace": "default"}
    await plane.make(
        EVENT,
        name,
        involvedObject=involved,
        reason="R",
        message="m",
        type="Normal",
        firstTimestamp=now,
        lastTimestamp=now,
        count=1,
    )


async def _bootstrap_token(plane: Plane, name: str, expiration: str, namespace: str = "kube-system") -> None:
    secret = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": expiration}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in secret.items()}
    await plane.make(SECRET, name, namespace=namespace, type="bootstrap.kubernetes.io/token", data=data)


def test_an_event_lives_an_hour_after_it_was_last_seen(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _event(plane, "once")
        await _event(plane, "again")
        await plane.settle(1800)
        patch = MergePatch({"count": 2, "lastTimestamp": rfc3339(plane.clock.now())})
        await plane.client.patch(EVENT, Key("default", "again"), patch)
        await plane.settle(1795)
        assert await plane.exists(EVENT, "once")
        await plane.settle(10)
        assert not await plane.exists(EVENT, "once")
        assert await plane.exists(EVENT, "again")
        await plane.settle(1800)
        assert not await plane.exists(EVENT, "again")

    on_plane(scenario)


def test_an_event_about_the_past_lives_as_long_as_any(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        involved = {"kind": "ConfigMap", "name": "c", "namespace": "default"}
        past = rfc3339(plane.clock.now() - 86_400)
        await plane.make(
            EVENT, "e", involvedObject=involved, reason="R", type="Normal", firstTimestamp=past, lastTimestamp=past
        )
        await plane.settle(3590)
        assert await plane.exists(EVENT, "e")
        await plane.settle(20)
        assert not await plane.exists(EVENT, "e")

    on_plane(scenario)


def test_events_that_expired_while_nobody_looked_go_at_the_start(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _event(plane, "old")
        await plane.settle(7200)
        assert await plane.exists(EVENT, "old")
        await plane.start()
        await plane.settle()
        assert not await plane.exists(EVENT, "old")

    on_plane(scenario, running=False)


def test_a_clock_that_is_set_forward_is_noticed_within_a_minute_and_one_set_back_deletes_nothing(
    on_plane: OnPlane,
) -> None:
    async def scenario(plane: Plane) -> None:
        await _event(plane, "e")
        plane.clock.jump(-86_400)
        await plane.settle(5000)
        assert await plane.exists(EVENT, "e")
        plane.clock.jump(2 * 86_400)
        await plane.settle(61)
        assert not await plane.exists(EVENT, "e")

    on_plane(scenario)


def test_bootstrap_tokens_end_when_they_say(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        start = plane.clock.now()
        await _bootstrap_token(plane, "bootstrap-token-abcdef", rfc3339(start + 600))
        await _bootstrap_token(plane, "bootstrap-token-ffffff", rfc3339(start + 86_400))
        await _bootstrap_token(plane, "elsewhere", rfc3339(start + 600), "default")
        await plane.settle(590)
        assert await plane.exists(SECRET, "bootstrap-token-abcdef", "kube-system")
        await plane.settle(20)
        assert not await plane.exists(SECRET, "bootstrap-token-abcdef", "kube-system")
        assert await plane.exists(SECRET, "bootstrap-token-ffffff", "kube-system")
        assert await plane.exists(SECRET, "elsewhere")

    on_plane(scenario)


def test_a_token_whose_end_is_moved_forward_goes_earlier(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        start = plane.clock.now()
        await _bootstrap_token(plane, "bootstrap-token-abcdef", rfc3339(start + 86_400))
        await plane.settle(10)
        soon = base64.b64encode(rfc3339(start + 60).encode()).decode()
        await plane.client.patch(
            SECRET, Key("kube-system", "bootstrap-token-abcdef"), MergePatch({"data": {"expiration": soon}})
        )
        await plane.settle(60)
        assert not await plane.exists(SECRET, "bootstrap-token-abcdef", "kube-system")

    on_plane(scenario)


def test_leases_of_members_long_gone_are_removed_and_those_of_leaders_stay(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": rfc3339_micro(plane.clock.now())}
        for name, labels in (("member", {GROUP_LABEL: "g"}), ("leader", {})):
            body = {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
            await plane.client.create(body, kind=LEASE)
        await plane.settle(3600)
        assert await plane.exists(LEASE, "member")
        await plane.settle(30)
        assert not await plane.exists(LEASE, "member")
        assert await plane.exists(LEASE, "leader")

    on_plane(scenario)
