"""Taking requests apart: paths, media types, bodies."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.apiserver.http.body import duplicate_fields
from homeport.apiserver.http.negotiate import JSON, YAML, Form, accepted
from homeport.apiserver.http.query import Query
from homeport.apiserver.http.route import RequestInfo, parse_request, split_target
from homeport.client.errors import BadRequest, NotAcceptable


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "v1", "a", "namespaces", "a", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "v1", "a", "namespaces", "a", "finalize")),
        ("GET", "/api/v1/namespaces/a/status", ("get", "", "v1", "a", "namespaces", "a", "status")),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "", "v1", "a", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/b/log", ("get", "", "v1", "a", "pods", "b", "log")),
        ("GET", "/api/v1/pods", ("list", "", "v1", "", "pods", "", "")),
        ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "", "v1", "a", "pods", "", "")),
        ("GET", "/api/v1/watch/pods", ("watch", "", "v1", "", "pods", "", "")),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", ("watch", "", "v1", "a", "pods", "b", "")),
        ("PATCH", "/apis/g.io/v1/namespaces/a/ws/b/scale", ("patch", "g.io", "v1", "a", "ws", "b", "scale")),
        ("POST", "/apis/g.io/v1beta1/ws/", ("create", "g.io", "v1beta1", "", "ws", "", "")),
        ("TRACE", "/apis/g.io/v1/ws", ("", "g.io", "v1", "", "ws", "", "")),
    ],
)
def test_resource_paths(method: str, path: str, expected: tuple[str, ...]) -> None:
    assert parse_request(method, path) == RequestInfo(path, *expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/g.io", "/apis/g.io/v1", "/healthz", "/apix/v1/a"]
)
def test_other_paths_are_no_resources(path: str) -> None:
    assert parse_request("GET", path) == RequestInfo(path, "get")


def test_a_watch_of_nothing_is_refused() -> None:
    with pytest.raises(BadRequest):
        parse_request("GET", "/api/v1/watch/")


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b?x=y&z", "/a/b", "x=y&z"),
        ("/a%2Fb/%C3%A4", "/a/b/ä", ""),
        ("/%ff", "/\ufffd", ""),
        ("https://host:1/a?b", "/a", "b"),
        ("*", "/", ""),
    ],
)
def test_targets_are_split_and_decoded(target: str, path: str, query: str) -> None:
    assert split_target(target) == (path, query)


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", Form(JSON)),
        ("*/*", Form(JSON)),
        ("application/yaml", Form(YAML)),
        ("application/json;q=0.5, application/yaml", Form(YAML)),
        ("application/yaml;q=0, application/json", Form(JSON)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form(JSON, "Table", "v1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form(JSON)),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
            Form(JSON, "PartialObjectMetadata", "v1beta1"),
        ),
    ],
)
def test_the_best_form_that_we_have_is_chosen(header: str, form: Form) -> None:
    assert accepted(header) == form


@pytest.mark.parametrize("header", ["text/html", "application/json;as=Other;g=meta.k8s.io;v=v1", "*/*;q=0"])
def test_an_unsupported_accept_header_is_refused(header: str) -> None:
    with pytest.raises(NotAcceptable):
        accepted(header)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"a":1,"b":{"c":2}}', []),
        ('{"a":1,"a":2}', ["a"]),
        ('{"a" :1,"a":2}', ["a"]),
        ('{"a":"x\\":y"}', []),
        ('{"l":[{"a":1},{"b":1,"b":2}]}', ["l[1].b"]),
        ('{"data":{"a":"b","a":"c"},"data":{"z":"y"}}', ["data.a", "data"]),
    ],
)
def test_duplicate_fields_are_found(body: str, found: list[str]) -> None:
    assert duplicate_fields(body.encode(), orjson.loads(body)) == found


_KEYS = st.sampled_from(["a", "b", ":", '":', 'x"', " "])
_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(_KEYS, inner), max_size=3).map(tuple),
    max_leaves=10,
)


def _written(value: Any, colon: str) -> tuple[str, bool]:
    """JSON text in which tuples are objects, and whether any has a field twice."""
    if isinstance(value, list):
        parts = [_written(item, colon) for item in value]
        return "[" + ",".join(text for text, _ in parts) + "]", any(double for _, double in parts)
    if isinstance(value, tuple):
        parts = [_written(item, colon) for _, item in value]
        names = [name for name, _ in value]
        text = ",".join(f"{json.dumps(name)}{colon}{part}" for name, (part, _) in zip(names, parts, strict=True))
        return "{" + text + "}", len(set(names)) < len(names) or any(double for _, double in parts)
    return json.dumps(value), False


@given(_JSON, st.sampled_from([":", " :", ": ", "\n:", "\t:\t"]))
@settings(max_examples=300, deadline=None)
def test_the_quick_look_never_misses_a_duplicate(value: Any, colon: str) -> None:
    text, double = _written(value, colon)
    assert bool(duplicate_fields(text.encode(), json.loads(text))) is double


def test_flags_are_true_when_present_unless_they_say_false() -> None:
    query = Query("a&b=&c=0&d=False&e=yes&f=1")
    assert [query.flag(name) for name in "abcdefg"] == [True, True, False, False, True, True, False]


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(BadRequest):
        Query("&".join(f"a{n}=1" for n in range(500)))
