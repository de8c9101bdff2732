"""Decoding: one walk that checks types, drops what nobody declared and brings values into their one form."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.kinds import builtin_kinds, decode, scalar, seed_objects
from homeport.apiserver.kinds.load import definitions

POD = "io.k8s.api.core.v1.Pod"


def test_undeclared_fields_are_dropped_and_named_with_their_place() -> None:
    obj: dict[str, Any] = {"spec": {"containers": [{"name": "a"}, {"name": "b", "foo": 1}], "bar": 2}, "baz": {"x": 1}}
    assert decode.read(POD, obj) == ["spec.containers[1].foo", "spec.bar", "baz"]
    assert obj == {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}


def test_reading_twice_changes_nothing_more() -> None:
    resources = {"limits": {"cpu": 0.5, "memory": "1.5Gi"}}
    obj: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "resources": resources}]}}
    decode.read(POD, obj)
    decode.fill(POD, obj)
    before = repr(obj)
    decode.read(POD, obj)
    decode.fill(POD, obj)
    assert repr(obj) == before


def test_every_built_in_kind_can_be_read_and_filled() -> None:
    for served in builtin_kinds():
        for version in served.versions.values():
            obj: dict[str, Any] = {"metadata": {"name": "x", "uid": "u", "namespace": "default"}}
            assert version.checker.prune(obj) == []
            version.checker.default(obj)
            assert obj["metadata"]["name"] == "x"


def test_every_field_that_the_schema_declares_is_known_to_the_decoder() -> None:
    known = definitions()
    missing = []
    for served in builtin_kinds():
        name = next(iter(served.versions.values())).raw_schema["$ref"].rsplit("/", 1)[1]  # type: ignore[index]
        kind = decode.type_of(name)
        assert isinstance(kind, decode.Struct)
        missing += [f"{name}.{field}" for field in known[name]["properties"] if field not in kind.fields]
    assert missing == []


@pytest.mark.parametrize(
    ("given", "byte"),
    [("YQ", 0), ("YWJ", 0), ("ab-_", 2), ("%", 0), ("YQ=", 3), ("YQ==YQ==", 4), ("YWJjYQ", 4), ("Y===", 1)],
)
def test_the_byte_at_which_base64_goes_wrong_is_named(given: str, byte: int) -> None:
    with pytest.raises(scalar.DecodeError, match=f"illegal base64 data at input byte {byte}$"):
        scalar.base64_text(given)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T02:00:00+02:00", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.999Z", "2020-01-01T00:00:00Z"),
    ],
)
def test_times_are_shown_in_utc_and_whole_seconds(given: str, shown: str) -> None:
    assert scalar.time(given) == shown


@pytest.mark.parametrize("given", ["2020-13-01T00:00:00Z", "2020-02-30T00:00:00Z", "2020-01-01T25:00:00Z"])
def test_a_time_that_never_is_is_refused(given: str) -> None:
    with pytest.raises(scalar.DecodeError, match="out of range"):
        scalar.time(given)


def test_seeds_can_be_created_in_their_order_and_the_endpoint_needs_a_host() -> None:
    plain = [kind.plural for _, kind in seed_objects()]
    assert plain == ["namespaces"] * 4 + ["priorityclasses"] * 2 + ["services"]
    assert [kind.plural for _, kind in seed_objects(host="192.0.2.1", port=6443)][-1] == "endpointslices"
