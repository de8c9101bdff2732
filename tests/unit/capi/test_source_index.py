from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Sources
from homeport.capi.sourceindex import SourceIndex
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache

A, B = Key("default", "a"), Key("default", "b")


def infra(name: str, secret: str, version: int = 1) -> Unstructured:
    meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return Unstructured(apiVersion="v1", kind="Infra", metadata=meta, secret=secret)


def sources(obj: Unstructured) -> Sources:
    return Sources((Key("default", obj["secret"]),), (Key("default", "bundle"),))


def test_users_follow_what_objects_name() -> None:
    cache: Cache[Unstructured] = Cache()
    cache.put(infra("one", "a"))
    index = SourceIndex(cache, "sources", sources)
    cache.put(infra("two", "b"))
    assert list(index.users(A)) == [Key("default", "one")]
    assert list(index.users(A, "config_maps")) == []
    cache.put(infra("one", "b", 2))
    assert list(index.users(A)) == []
    assert set(index.users(B)) == {Key("default", "one"), Key("default", "two")}
    cache.drop(Key("default", "two"))
    assert list(index.users(B)) == [Key("default", "one")]


def test_an_object_that_names_the_same_twice_is_a_user_once() -> None:
    cache: Cache[Unstructured] = Cache()
    index = SourceIndex(cache, "sources", lambda obj: Sources((A,), (A,)))
    cache.put(infra("one", "a"))
    assert list(index.users(A)) == [Key("default", "one")]
