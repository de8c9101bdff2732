"""Sealed buckets: nothing readable on disk, a clear word about a wrong key."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.store import AesGcm, SealBroken, Store, StoreDamaged, WrongKey

KEY, OTHER = b"k" * 32, b"o" * 32
SEALED = frozenset({"secrets"})


async def open_store(path: Path, key: bytes | None = KEY) -> Store:
    if key is None:
        return await Store.open(path)
    return await Store.open(path, cipher=AesGcm(key), sealed=SEALED)


async def written(path: Path) -> None:
    store = await open_store(path)
    await store.put("secrets", "ns/token", lambda revision: b"hush-one", expect=0)
    await store.put("secrets", "ns/token", lambda revision: b"hush-two", expect=1)
    await store.put("secrets", "ns/gone", lambda revision: b"hush-three", expect=0)
    await store.delete("secrets", "ns/gone", lambda revision: b"hush-four", expect=3)
    await store.put("pods", "ns/a", lambda revision: b"public", expect=0)
    wal = path.with_name(path.name + "-wal").read_bytes()
    assert b"hush" not in wal
    assert b"public" in wal
    await store.close()


async def test_sealed_values_are_unreadable_on_disk_in_objects_and_history(tmp_path: Path) -> None:
    await written(tmp_path / "homeport.db")
    data = (tmp_path / "homeport.db").read_bytes()
    assert b"hush" not in data
    assert b"public" in data


async def test_sealed_values_and_their_history_are_back_after_a_restart(tmp_path: Path) -> None:
    await written(tmp_path / "homeport.db")
    store = await open_store(tmp_path / "homeport.db")
    record = store.get("secrets", "ns/token")
    assert record is not None
    assert record.value == b"hush-two"
    changes = await anext(store.watch("secrets", after=0))
    assert [change.record.value if change.record else change.value for change in changes] == [
        b"hush-one",
        b"hush-two",
        b"hush-three",
        b"hush-four",
    ]
    await store.close()


async def test_a_wrong_key_is_named_as_the_problem(tmp_path: Path) -> None:
    await written(tmp_path / "homeport.db")
    with pytest.raises(WrongKey, match="another key; put the key back") as caught:
        await open_store(tmp_path / "homeport.db", OTHER)
    assert isinstance(caught.value, StoreDamaged)
    await (await open_store(tmp_path / "homeport.db")).close()


async def test_a_missing_key_is_named_as_the_problem(tmp_path: Path) -> None:
    await written(tmp_path / "homeport.db")
    with pytest.raises(WrongKey, match="secrets 'ns/token' is encrypted, and the key is missing"):
        await open_store(tmp_path / "homeport.db", None)


async def test_a_key_given_later_seals_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await open_store(path, None)
    await store.put("secrets", "old", lambda revision: b"was-plain", expect=0)
    await store.close()
    store = await open_store(path)
    await store.put("secrets", "new", lambda revision: b"is-sealed", expect=0)
    assert [record.value for record in store.range("secrets")] == [b"is-sealed", b"was-plain"]
    await store.close()
    assert b"is-sealed" not in path.read_bytes()
    with pytest.raises(WrongKey):
        await open_store(path, OTHER)


async def test_buckets_to_seal_without_a_cipher_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    for path in (None, tmp_path / "homeport.db"):
        with pytest.raises(ValueError, match="secrets"):
            await Store.open(path, sealed=SEALED)


def test_a_sealed_value_opens_only_in_its_place_and_whole() -> None:
    cipher = AesGcm(KEY)
    sealed = cipher.seal(b"value", b"secrets/ns/a")
    assert cipher.open(sealed, b"secrets/ns/a") == b"value"
    for broken, place in ((sealed, b"secrets/ns/b"), (sealed[:-1], b"secrets/ns/a"), (b"", b"secrets/ns/a")):
        with pytest.raises(SealBroken, match="secrets/ns"):
            cipher.open(broken, place)
    assert cipher.seal(b"value", b"secrets/ns/a") != sealed


def test_a_key_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="has 16 bytes, it must have 32"):
        AesGcm(b"k" * 16)
    assert len(AesGcm.generate_key()) == 32
