from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.meta import Unstructured
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, key_of, uid_of, version_of
from homeport.runtime.clock import run_virtual
from present import present

NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.integers(0, 3), st.integers(1, 30), st.sampled_from(["red", "blue"])),
        st.tuples(st.just("drop"), NAMES),
        st.tuples(
            st.just("list"), st.dictionaries(NAMES, st.tuples(st.integers(0, 3), st.integers(1, 30)), max_size=4)
        ),
    ),
    max_size=40,
)


def thing(name: str, uid: int, version: int, color: str = "red") -> Unstructured:
    meta = {
        "name": name,
        "namespace": "n",
        "uid": str(uid),
        "resourceVersion": str(version),
        "labels": {"color": color},
    }
    return Unstructured(metadata=meta)


def colors(obj: Any) -> list[str]:
    return [obj.metadata["labels"]["color"]]


@given(STEPS)
@settings(deadline=None, max_examples=300)
def test_a_cache_is_what_a_plain_model_says_and_its_indexes_agree(steps: list[tuple[Any, ...]]) -> None:
    cache: Cache[Unstructured] = Cache()
    cache.add_index("color", colors)
    model: dict[Key, Unstructured] = {}
    revision = 0
    for step in steps:
        match step:
            case ("put", name, uid, version, color):
                obj = thing(name, uid, version, color)
                known = model.get(key_of(obj))
                stale = known is not None and uid_of(known) == uid_of(obj) and version < version_of(known)
                assert cache.put(obj) is not stale
                if not stale:
                    model[key_of(obj)] = obj
                    revision = max(revision, version)
            case ("drop", name):
                assert cache.drop(Key("n", name)) is model.pop(Key("n", name), None)
            case ("list", content):
                seen = {Key("n", name): thing(name, uid, version) for name, (uid, version) in content.items()}
                changes = cache.replace(seen, 7)
                told = dict(model)
                for old, new in changes:  # whoever follows the changes ends with the same content
                    key = key_of(present(new if new is not None else old))
                    assert (told.get(key) is None) == (old is None)
                    if new is None:
                        del told[key]
                    else:
                        told[key] = new
                for key, obj in told.items():
                    assert (uid_of(obj), version_of(obj)) == (uid_of(seen[key]), version_of(seen[key]))
                assert told.keys() == seen.keys()
                model, revision = told, 7
        assert {key_of(obj): obj for obj in cache} == model
        assert cache.revision == revision
        for color in ("red", "blue"):
            found = {key_of(obj) for obj in cache.by("color", color)}
            assert found == {key for key, obj in model.items() if colors(obj) == [color]}


def test_whoever_waits_for_a_revision_or_a_key_is_woken_by_it_alone() -> None:
    async def scenario() -> list[str]:
        cache: Cache[Unstructured] = Cache()
        woken: list[str] = []

        async def wait(name: str, **what: Any) -> None:
            await cache.news(**what)
            woken.append(name)

        async with asyncio.TaskGroup() as group:
            group.create_task(wait("at 9", revision=9))
            group.create_task(wait("at 5", revision=5))
            group.create_task(wait("b", key=Key("n", "b")))
            await asyncio.sleep(1)
            for version, name in ((4, "a"), (5, "a"), (8, "b"), (9, "a")):
                cache.put(thing(name, 1, version))
                await asyncio.sleep(1)
        return woken

    assert run_virtual(scenario()) == ["at 5", "b", "at 9"]


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        cache: Cache[Unstructured] = Cache()
        waits = [asyncio.create_task(cache.news(revision=9, key=Key("n", "a"))) for _ in range(3)]
        await asyncio.sleep(1)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        cache.put(thing("a", 1, 9))
        assert not cache._by_key
        assert not cache._by_revision

    run_virtual(scenario())


def test_an_index_may_come_late_but_not_twice() -> None:
    cache: Cache[Unstructured] = Cache()
    cache.put(thing("a", 1, 1))
    cache.add_index("color", colors)
    assert len(cache.by("color", "red")) == 1
    assert cache.by("color", "green") == []
    with pytest.raises(ValueError, match="already"):
        cache.add_index("color", colors)
