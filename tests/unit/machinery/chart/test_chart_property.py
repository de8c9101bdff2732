"""Functions of charts take everything: they give a value that can be written, or an error that the template reports."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.machinery.chart import Capabilities, ChartError, ReleaseInfo, load_chart, render
from homeport.machinery.chart.context import Files, Values, capabilities_of
from homeport.machinery.chart.engine import Engine, names
from homeport.machinery.chart.function.key import Certificate
from homeport.machinery.chart.function.moment import Time
from homeport.machinery.chart.function.toml import to_toml
from homeport.machinery.chart.function.yamltext import to_yaml, to_yaml_pretty
from homeport.machinery.gotemplate.error import CallError, TemplateError
from homeport.machinery.gotemplate.function import fitting
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.sprig.encoding import to_json
from homeport.machinery.gotemplate.sprig.mapping import copied
from homeport.machinery.gotemplate.value import Bytes, Duration, Int64, NilList, NilMap, StringMap, Strings, Uint64
from homeport.machinery.yaml import load_first

SLOW = ("bcrypt", "htpasswd", "genCA", "genSelfSignedCert", "genSignedCert", "genPrivateKey", "derivePassword")
PLAIN: list[Any] = [
    None, True, False, 0, 1, -1, 7, 10**18, 1.5, -0.0, 1e300, float("inf"), float("nan"), "", "a", "10.0.0.1", "1h",
    "2006-01-02", "\udcff\udc80x", "ü🚢\u2028", "{{ .x }}", "[", "$1", "%d %s", "1.2.3", ">=1", Int64(5), Uint64(3),
    Bytes(b"a\xffb"), Duration(10**9), Time(datetime(2026, 1, 1, tzinfo=UTC)), NilMap(), NilList(), StringMap(a="b"),
    Strings(["a"]), Values(a=1.0), Files(a=Bytes(b"x")), Certificate("a", "b"), capabilities_of(Capabilities()),
]  # fmt: skip
FALLBACK = {"int": 3, "string": "s", "float": 1.0, "bool": True, "map": {}}


def argument(chance: random.Random, wanted: str) -> Any:
    for _ in range(40):
        made = copied(chance.choice(PLAIN))  # some functions change what they are given
        if chance.random() < 0.3:
            made = {"a": made, "b": [copied(made)]} if chance.random() < 0.5 else [made, {"c": made}]
        try:
            return fitting(made, wanted)
        except CallError:
            continue
    return FALLBACK[wanted]


@pytest.mark.parametrize("name", sorted(names(4) - {"and", "or", "call"}))
def test_a_function_gives_a_value_or_an_error(name: str) -> None:
    chance = random.Random(name)
    function = Engine(4, ReleaseInfo("web", seed=b"secret"), None).table[name]
    for _ in range(3 if name.startswith(SLOW) else 60):
        count = len(function.params) + (chance.randrange(4) if function.rest else 0)
        arguments = [argument(chance, function.type_at(i)) for i in range(count)]
        try:
            made = function.call(*arguments)
            for write in (shown, to_json, to_yaml, to_yaml_pretty, to_toml):
                assert isinstance(write(made), str)
        except (CallError, TemplateError):
            continue


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f\ufeff\ufffe\uffff"), max_size=120)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_yaml_is_read_back_as_the_same_value(value: Any) -> None:
    for write in (to_yaml, to_yaml_pretty):
        text = write(value)
        if text or value == "":
            assert load_first(text + "\n") == value


def test_a_text_with_half_a_character_is_an_error_that_names_the_file() -> None:
    template = 'a: {{ trunc 1 "ü" }}'
    files = {"Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n", "templates/t.yaml": template.encode()}
    with pytest.raises(ChartError, match=r"demo/templates/t\.yaml: object 1 .*UTF-8"):
        render(load_chart(files), {}, ReleaseInfo("web"))
