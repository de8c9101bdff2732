"""Paths into objects."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.jsonpath import PathError, compile_path, read, render, simple_path, write

OBJ: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"example.com/x": "1", "b.c": "2"}},
    "spec": {
        "replicas": 3,
        "zero": 0,
        "null": None,
        "ports": [{"name": "http", "port": 80}, {"name": "s", "port": 443}],
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Up", "status": "False", "n": 2},
            {"type": "Odd"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["a"]),
        ("{.metadata.name}", ["a"]),
        ("$.metadata.name", ["a"]),
        ("metadata.name", ["a"]),
        (".spec.zero", [0]),
        (".spec.null", [None]),
        (".spec.absent", []),
        (".spec.replicas.deeper", []),
        (".spec.ports[0].name", ["http"]),
        (".spec.ports[-1].name", ["s"]),
        (".spec.ports[9].name", []),
        (".spec.ports[*].port", [80, 443]),
        (".spec.ports[0:1].port", [80]),
        (".spec.ports[::2].port", [80]),
        (".spec.ports[0,1].name", ["http", "s"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type == "Ready")].status', ["True"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Up", "Odd"]),
        (".status.conditions[?(@.n>1)].type", ["Up"]),
        (".status.conditions[?(@.n)].type", ["Ready", "Up"]),
        ('.status.conditions[?(@.n>"x")].type', []),
        (".metadata.labels['example.com/x']", ["1"]),
        (".metadata.labels['example\\.com/x']", ["1"]),
        (".metadata.labels.b\\.c", ["2"]),
        (".metadata['name','absent']", ["a"]),
        ("..port", [80, 443]),
        (".metadata.labels.*", ["1", "2"]),
        ("{@.metadata.name}", ["a"]),
    ],
)
def test_a_path_finds_its_values(path: str, found: list[Any]) -> None:
    assert compile_path(path)(OBJ) == found


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(]", "{.a", ".a]", ".a..", ".a b", ".a[0:1:0]", ".a[]"])
def test_an_unreadable_path_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


def test_plain_paths_read_and_write() -> None:
    obj: dict[str, Any] = {"spec": {"replicas": 1}}
    assert read(obj, ".spec.replicas") == 1
    assert read(obj, ".status.replicas") is None
    write(obj, ".status.deep.replicas", 2)
    assert obj["status"] == {"deep": {"replicas": 2}}
    with pytest.raises(PathError, match="replicas is not a map"):
        write(obj, ".spec.replicas.x", 1)
    with pytest.raises(PathError, match="plain path"):
        simple_path(".a[0]")


def test_values_are_rendered_as_kubectl_prints_them() -> None:
    assert [render(v) for v in ("a", True, None, 3, 2.0, 1.5, {"b": 1, "a": [1]})] == [
        "a",
        "true",
        "null",
        "3",
        "2",
        "1.5",
        '{"a":[1],"b":1}',
    ]
