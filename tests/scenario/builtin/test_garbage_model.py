"""Random ownership graphs, deletions and restarts, watched by an observer that knows the rules of ownership."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from homeport.api.meta import Unstructured
from homeport.client.errors import ApiError, Conflict
from homeport.client.protocol import Key, MergePatch
from homeport.store import Change
from scenario.builtin.plane import CONFIG_MAP, NAMESPACE, OnPlane, Plane, owner_ref

HOLD = "example.com/hold"
COUNT = 7
POLICIES = ("Background", "Foreground", "Orphan")


def _story(seed: int) -> list[tuple[Any, ...]]:
    """A graph of owners, and what happens to it. Drawn evenly: small graphs have few circles to get wrong."""
    chance = random.Random(seed)

    def owners() -> list[int]:
        return chance.sample(range(COUNT), chance.choice((0, 1, 1, 1, 2, 2, 3)))

    def step() -> tuple[Any, ...]:
        number = chance.randrange(COUNT)
        return chance.choice(
            (
                ("delete", number, chance.choice(POLICIES)),
                ("delete", number, chance.choice(POLICIES)),
                ("pause", chance.choice((0.0, 0.001, 1.0))),
                ("make", number, owners(), chance.random() < 0.7),
                ("own", number, owners(), chance.random() < 0.7),
                ("hold", number),
                ("release", number),
                ("restart",),
            )
        )

    made: list[tuple[Any, ...]] = [("make", n, [], False) for n in range(COUNT)]
    owned = [("own", n, owners(), chance.random() < 0.7) for n in range(COUNT)]
    return [*made, *owned, *(step() for _ in range(chance.randrange(3, 25)))]


@dataclass
class Observer:
    """Sees every commit in order, and judges each end of life by the state before it."""

    alive: dict[str, dict[str, Any]] = field(default_factory=dict)  # uid > metadata
    asked: dict[str, str] = field(default_factory=dict)  # uids that somebody asked to delete, and how
    late: set[tuple[str, str]] = field(default_factory=set)  # references made when the owner was going already
    waited: set[str] = field(default_factory=set)  # deleted in the foreground; other finalizers may hold them longer

    def see(self, changes: list[Change]) -> None:
        for change in changes:
            value = change.value if change.record is None else change.record.value
            assert value is not None
            meta = orjson.loads(value)["metadata"]
            before = self.alive.get(meta["uid"])
            ends = change.record is None or meta.get("deletionTimestamp")
            if before is not None and ends and not before.get("deletionTimestamp") and meta["uid"] not in self.asked:
                self._judge_collection(before)
            if change.record is None:
                self._judge_removal(before or meta)
                self.alive.pop(meta["uid"], None)
            else:
                self._note_late(before or {}, meta)
                if _waits(meta):
                    self.waited.add(meta["uid"])
                self.alive[meta["uid"]] = meta

    def _note_late(self, before: dict[str, Any], meta: dict[str, Any]) -> None:
        known = {ref["uid"] for ref in before.get("ownerReferences") or ()}
        for ref in meta.get("ownerReferences") or ():
            if ref["uid"] not in known and self.alive.get(ref["uid"], {}).get("deletionTimestamp"):
                self.late.add((meta["uid"], ref["uid"]))

    def _owner(self, meta: dict[str, Any], ref: dict[str, Any]) -> dict[str, Any] | None:
        owner = self.alive.get(ref["uid"])
        return owner if owner is not None and owner["namespace"] == meta["namespace"] else None

    def _foreign(self, meta: dict[str, Any], ref: dict[str, Any]) -> bool:
        owner = self.alive.get(ref["uid"])
        return owner is not None and owner["namespace"] != meta["namespace"]

    def _judge_collection(self, meta: dict[str, Any]) -> None:
        refs = [r for r in meta.get("ownerReferences") or () if not self._foreign(meta, r)]
        assert refs, f"{meta['name']} had no owner of its own and was deleted"
        for ref in refs:
            owner = self._owner(meta, ref)
            assert owner is None or owner["uid"] in self.waited, (
                f"{meta['name']} was deleted while its owner {ref['name']} stands"
            )

    def _judge_removal(self, meta: dict[str, Any]) -> None:
        finalizers = set(meta.get("finalizers") or ())
        if (asked := self.asked.get(meta["uid"])) is not None:  # who asks again changes how it goes
            finalizers &= {{"Orphan": "orphan", "Foreground": "foregroundDeletion"}.get(asked)}
        for other in self.alive.values():
            for ref in other.get("ownerReferences") or ():
                if ref["uid"] != meta["uid"] or other["namespace"] != meta["namespace"] or other["uid"] == meta["uid"]:
                    continue
                if (other["uid"], ref["uid"]) in self.late:
                    continue  # it may have come a moment too late to be waited for
                assert "orphan" not in finalizers, f"{other['name']} still refers to {meta['name']} that orphaned it"
                if "foregroundDeletion" in finalizers and ref.get("blockOwnerDeletion"):
                    assert other["uid"] in self.waited, f"{meta['name']} went before {other['name']}"

    def judge_peace(self) -> None:
        """Nothing is left to do: what remains is what should."""
        for meta in self.alive.values():
            assert not meta.get("deletionTimestamp"), f"{meta['name']} never went"
            refs = [r for r in meta.get("ownerReferences") or () if not self._foreign(meta, r)]
            assert all(self._owner(meta, r) for r in refs), f"{meta['name']} refers to owners that are gone"


def _waits(meta: dict[str, Any]) -> bool:
    return bool(meta.get("deletionTimestamp")) and "foregroundDeletion" in (meta.get("finalizers") or ())


def _place(number: int) -> Key:
    return Key("far" if number == 3 else "near", f"c{number}")


async def _step(plane: Plane, observer: Observer, step: tuple[Any, ...]) -> None:
    match step:
        case ("pause", seconds):
            await asyncio.sleep(seconds)
        case ("restart",):
            await plane.stop()
            await plane.start()
        case ("make", number, owners, block):
            key = _place(number)
            await plane.make(
                CONFIG_MAP, key.name, namespace=key.namespace, owners=await _found(plane, owners), block=block
            )
        case ("own", number, owners, block):
            refs = [owner_ref(owner, block=block) for owner in await _found(plane, owners)]
            await plane.client.patch(
                CONFIG_MAP, _place(number), MergePatch({"metadata": {"ownerReferences": refs or None}})
            )
        case ("hold", number):
            if (found := await plane.find(CONFIG_MAP, _place(number).name, _place(number).namespace)) is not None:
                kept = [*(found.metadata.get("finalizers") or ()), HOLD]
                patch = {"finalizers": list(dict.fromkeys(kept)), "resourceVersion": found.resource_version}
                await plane.client.patch(CONFIG_MAP, _place(number), MergePatch({"metadata": patch}))
        case ("release", number):
            await _release(plane, _place(number))
        case ("delete", number, policy):
            found = await plane.client.get(CONFIG_MAP, _place(number))
            observer.asked[found.uid] = policy
            await plane.client.delete(CONFIG_MAP, _place(number), uid=found.uid, propagation=policy)


async def _found(plane: Plane, numbers: list[int]) -> tuple[Unstructured, ...]:
    found = [await plane.find(CONFIG_MAP, _place(n).name, _place(n).namespace) for n in dict.fromkeys(numbers)]
    return tuple(f for f in found if f is not None)


async def _release(plane: Plane, key: Key) -> None:
    while found := await plane.find(CONFIG_MAP, key.name, key.namespace):
        held = found.metadata.get("finalizers", ())
        if HOLD not in held:
            return
        kept = [f for f in held if f != HOLD]
        patch = {"finalizers": kept or None, "resourceVersion": found.resource_version}
        with contextlib.suppress(Conflict):  # the collector was faster
            await plane.client.patch(CONFIG_MAP, key, MergePatch({"metadata": patch}))
        await asyncio.sleep(0)


@given(st.integers(0, 2**32))
@settings(
    deadline=None,
    max_examples=80,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_nothing_is_collected_that_has_an_owner_and_everything_that_lost_its_owners_is(
    on_plane: OnPlane, seed: int
) -> None:
    async def scenario(plane: Plane) -> None:
        for name in ("near", "far"):
            await plane.make(NAMESPACE, name)
        await plane.settle(1.0)
        observer = Observer()
        failures: list[AssertionError] = []

        def see(changes: list[Change]) -> None:
            try:
                observer.see([c for c in changes if not c.name.endswith("kube-root-ca.crt")])
            except AssertionError as error:
                failures.append(error)

        plane.server.store.subscribe("configmaps", see)
        for step in _story(seed):
            with contextlib.suppress(ApiError):  # it is there already, is gone, may not get finalizers any more
                await _step(plane, observer, step)
        for number in range(COUNT):
            await _release(plane, _place(number))
        await plane.settle(30.0)
        if failures:
            raise failures[0]
        observer.judge_peace()
        assert plane.collector.idle
        assert len(plane.collector.graph.nodes) == sum(bool(m.get("ownerReferences")) for m in observer.alive.values())

    on_plane(scenario)
