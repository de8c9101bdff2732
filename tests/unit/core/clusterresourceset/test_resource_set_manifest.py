"""What stands in a ConfigMap or Secret of a set."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from homeport.machinery.manifest import ManifestError, content, described, parse_objects


def kinds(**texts: str) -> list[str]:
    found = parse_objects({key: text.encode() for key, text in texts.items()})
    return [f"{each['kind']}/{each['metadata'].get('name', '')}" for each in found]


def of(kind: str, name: str = "a") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"


def test_a_digest_is_over_all_values_in_the_order_of_their_keys() -> None:
    expected = f"sha256:{hashlib.sha256(b'onetwo').hexdigest()}"
    assert content({"kind": "ConfigMap", "data": {"b": "two", "a": "one"}}).digest == expected
    encoded = {key: base64.b64encode(text).decode() for key, text in (("a", b"one"), ("b", b"two"))}
    assert content({"kind": "Secret", "data": encoded}) == ({"a": b"one", "b": b"two"}, expected)


def test_a_value_of_a_secret_that_is_not_base64_is_named() -> None:
    with pytest.raises(ManifestError, match=r"^key: "):
        content({"kind": "Secret", "data": {"key": "***"}})


def test_objects_come_in_an_order_in_which_they_can_be_created() -> None:
    text = "---\n".join(
        of(kind)
        for kind in (
            "ValidatingWebhookConfiguration",
            "DaemonSet",
            "ConfigMap",
            "Widget",
            "ServiceAccount",
            "CustomResourceDefinition",
            "Namespace",
        )
    )
    assert [each.partition("/")[0] for each in kinds(x=text)] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ConfigMap",
        "DaemonSet",
        "Widget",
        "ValidatingWebhookConfiguration",
    ]


def test_a_namespace_of_a_later_key_comes_first_too() -> None:
    assert kinds(a=of("Pod"), b=of("Namespace")) == ["Namespace/a", "Pod/a"]


def test_json_and_lists_are_read_and_empty_documents_passed_over() -> None:
    listed = '[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]'
    of_kind_list = (
        '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"}}]}'
    )
    assert kinds(a=listed, b=of_kind_list, c=f"---\n# nothing\n---\n{of('Pod', 'r')}") == ["Pod/p", "Pod/q", "Pod/r"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\nmetadata: {name: a}\n", "x.yaml: object 1: apiVersion is missing"),
        (f"{of('Pod')}---\napiVersion: v1\nmetadata: {{name: a}}\n", "x.yaml: object 2: kind is missing"),
        ("apiVersion: v1\nkind: Pod\n", r"x.yaml: object 1 \(Pod\): metadata.name is missing"),
        ("apiVersion: a/b/c\nkind: Pod\nmetadata: {name: a}\n", "x.yaml: object 1: unexpected GroupVersion"),
        ("a: b: c", "x.yaml:1"),
        ("just text", "x.yaml:1: expected an object"),
        ("[1, 2]", "x.yaml: every item of the list must be an object"),
        ("[1, ", "x.yaml: "),
    ],
)
def test_what_can_not_be_read_is_named_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ManifestError, match=f"^{said}"):
        parse_objects({"x.yaml": text.encode()})


def test_an_empty_source_is_refused() -> None:
    with pytest.raises(ManifestError, match="it has no data"):
        parse_objects({})


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ManifestError, match=r"^x"):
        parse_objects({"x": b"\xff\xfe\x00"})


@pytest.mark.parametrize(
    ("meta", "said"),
    [({"name": "a"}, "Pod a"), ({"name": "a", "namespace": "n"}, "Pod n/a"), ({"generateName": "a-"}, "Pod a-*")],
)
def test_an_object_is_described_as_people_find_it(meta: dict[str, Any], said: str) -> None:
    assert described({"kind": "Pod", "metadata": meta}) == said
