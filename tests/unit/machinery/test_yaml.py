"""YAML as kubectl reads it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.machinery.yaml import YamlError, dump, load, load_all


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("N", False), ("yes", True), ("On", True), ("off", False), ("TRUE", True), ("~", None), ("", None),
        ("0755", 493), ("0o755", 493), ("0x1F", 31), ("-0b11", -3), ("08", 8), ("1_000", 1000), ("1e3", 1000),
        ("+1", 1), (".5", 0.5), ("1.0", 1), ("12:34:56", "12:34:56"), ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"), ("=", "="), ("1.2.3", "1.2.3"), ("'5'", "5"), ("!!str 5", "5"),
        ("!!int '5'", 5), ("0o8", "0o8"), ("yEs", "yEs"), ("18446744073709551616", 1.8446744073709552e19),
        ("!!binary aGk=", "hi"), ("!custom x", "x"), ("9223372036854775807", 2**63 - 1),
    ],
)  # fmt: skip
def test_a_scalar_means_what_it_means_to_kubectl(text: str, value: Any) -> None:
    found = load(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_keys_become_strings() -> None:
    assert load("1: a\non: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


def test_anchors_and_merge_keys_work_and_copies_are_independent() -> None:
    doc = load("a: &a {x: 1, l: [1]}\nb:\n  <<: *a\n  x: 2\nc: *a\nd:\n  <<: [*a, {z: 3}]\n")
    assert doc["b"] == {"x": 2, "l": [1]}
    assert doc["d"] == {"x": 1, "l": [1], "z": 3}
    doc["c"]["l"].append(2)
    assert doc["a"]["l"] == [1]


def test_many_documents_come_as_a_list_without_the_empty_ones() -> None:
    assert load_all("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 'm.yaml:3: key "a" already set in map'),
        ("a:\n- x\n- x: 1\n  x: 2\n", 'm.yaml:4: key "x" already set in map'),
        ("a: 1\n---\n- 1\n", "m.yaml:3: expected an object (key: value), found a list"),
        ("a: .inf\n", "m.yaml:1: .inf has no place in JSON"),
        ("a: b: c\n", "m.yaml:1: mapping values are not allowed in this context"),
        ("a:\n\tb: 1\n", "m.yaml:2: "),
        ("a: *b\n", "m.yaml:1: found undefined alias"),
        ("a: &a [*a]\n", "m.yaml:1: an anchor contains itself"),
        ("a: {<<: 1}\n", "m.yaml:1: map merge requires map or sequence of maps as the value"),
        ("? [a]\n: b\n", "m.yaml:1: a key must be"),
        ("a: !!int x\n", "m.yaml:1: cannot decode 'x' as a !!int"),
        ("[" * 100_000, "m.yaml:1: the document is nested too deeply"),
        ("- " * 100_000, "m.yaml:1: the document is nested too deeply"),
        ("".join(" " * i + "a:\n" for i in range(600)), "m.yaml"),
    ],
)
def test_an_error_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(YamlError) as error:
        load_all(text, "m.yaml")
    assert str(error.value).startswith(message)


def test_aliases_that_unfold_into_millions_are_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(YamlError, match="excessive aliasing"):
        load("\n".join(lines))


def test_a_large_document_takes_little_more_than_its_values() -> None:
    text = "a: [" + "b, " * 50_000 + "]"
    tracemalloc.start()
    try:
        assert len(load(text)["a"]) == 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(YamlError, match="not UTF-8"):
        load(b"a: \xff")
    assert load(b"\xef\xbb\xbfa: 1") == {"a": 1}


def test_two_documents_where_one_is_expected_are_refused() -> None:
    with pytest.raises(YamlError, match="line 3: expected one document, found 2"):
        load("a: 1\n---\nb: 1\n")


def test_strings_that_look_like_something_else_are_quoted() -> None:
    text = dump({"a": "y", "b": "1e3", "c": "0o7", "d": "2020-01-01", "e": "plain", "f": "two\nlines\n"})
    assert text == "a: 'y'\nb: '1e3'\nc: '0o7'\nd: '2020-01-01'\ne: plain\nf: |\n  two\n  lines\n"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text("abcyn01.-~ \n", max_size=5), children, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert load(dump({"v": value})) == {"v": value}
