"""Go's answers, its refusals in our words, and the bounds that Go has not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from golden.template_corpus import cases
from homeport.machinery.gotemplate import TemplateError, compiled, render
from homeport.machinery.gotemplate.sprig.encoding import floats
from homeport.machinery.gotemplate.sprig.refusal import REFUSED
from homeport.machinery.gotemplate.template import _ALL

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "gotemplate.json").read_text())
VALUES: dict[str, Any] = {"list": [1, 2, 3], "map": {"b": 1, "a": "x"}, "name": "c1", "three": 3.0, "nil": None}


def test_every_template_of_the_corpus_has_an_answer_of_go() -> None:
    assert [case["template"] for case in cases()] == [answer["template"] for answer in GOLDEN]


@pytest.mark.parametrize("number", range(0, len(GOLDEN), 20))
def test_templates_give_what_go_gives(number: int) -> None:
    for case, answer in list(zip(cases(), GOLDEN, strict=True))[number : number + 20]:
        assert rendered(case) == expected(answer), case["template"]


def rendered(case: dict[str, Any]) -> dict[str, str]:
    try:
        template = compiled(case["template"], plain=case.get("plain", False))
    except TemplateError:
        return {"error": "parse"}
    try:
        return {"text": template.render(floats(case["data"]), strict=case.get("strict", False))}
    except TemplateError:
        return {"error": "execute"}


def expected(answer: dict[str, str]) -> dict[str, str]:
    """Go writes bytes; what is no UTF-8 could be put into no object, so it is an error here."""
    said = {key: value for key, value in answer.items() if key != "template"}
    return {"error": "execute"} if "hex" in said else said


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n{{ .nil.more }}", "line 2: a nil has no field 'more'"),
        ("{{ .name.x }}", "a value of type string has no field 'x'"),
        ("{{ if .x }}", "if is not closed"),
        ("{{ end }}", "without a beginning"),
        ("{{ }}", "action is empty"),
        ("\n{{ .a ", "line 2: an action is not closed: '}}' is missing"),
        ("{{ unknown 1 }}", "function 'unknown' is not known"),
        ("{{ $x }}", r"undefined variable \$x"),
        ("{{ index .list 9 }}", "index: index out of range: 9 of 3"),
        ("{{ eq 1 .three }}", "int and float64 can't be compared: numbers of variables are float64"),
        ("{{ repeat .three .name }}", "repeat: int is needed, not float64: convert it with int"),
        ("{{ upper .nothing }}", "upper: a value is missing where string is needed"),
        ("{{ upper 1 }}", "upper: string is needed, not 1"),
        ("{{ upper }}", "upper takes 1 arguments, not 0"),
        ("{{ break }}", "outside of a range"),
        ('{{ template "x" }}', "undefined template 'x'"),
        ("{{ .list 1 }}", "list is not a function"),
        ("{{ range .name }}{{ end }}", "range can't go over a value of type string"),
        ('{{ fail "this is it" }}', "fail: this is it"),
        ("{{ semver .name }}", "'c1' is not a valid version"),
        ('{{ regexFind "(" "a" }}', "not a valid regular expression"),
        ('{{ trunc 1 "ü" }}', "not UTF-8"),
        ("{{ now }}", "'now' is not available: it reads the clock"),
        ("{{ randAlpha 5 }}", "returns another value each time"),
        ('{{ env "HOME" }}', "environment of the controller"),
        ('{{ genCA "a" 1 }}', "makes secrets"),
    ],
)
def test_what_go_refuses_is_refused_with_the_line_and_the_reason(source: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        compiled(source).render(VALUES)


@pytest.mark.parametrize(
    "source",
    [
        "{{ range 200000000 }}{{ end }}",
        "{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}",
        "{{ repeat 1000000000 `x` }}",
        "{{ $x := `aaaaaaaaaa` }}{{ range until 50 }}{{ $x = print $x $x }}{{ end }}",
        "{{ $x := list 1 }}{{ range until 50 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
        "{{ $x := dict }}{{ range until 50 }}{{ $x = dict `a` $x `b` $x }}{{ end }}{{ $x | toJson }}",
        "{{ $x := dict }}{{ $y := set $x `x` $x }}{{ $x }}",
        "{{ $x := list }}{{ range until 90000 }}{{ $x = list $x }}{{ end }}{{ $x }}",
        "{{ range until 100000 }}{{ $.big | sha256sum }}{{ end }}",
        "{{ range until 100000 }}{{ $.many | toJson | len }}{{ end }}",
        "{{ replace `a` .big .big }}",
        "{{ regexReplaceAll `a` .big .big }}",
        "{{ regexReplaceAll `(a*)` .big `$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1` }}{{ range 9 }}{{ $.big }}{{ end }}",
        "{{ join .big .many }}",
        "{{ indent 1000000 (repeat 1000 `\n`) }}",
        "{{ wrapWith 1 .big .big }}",
        "{{ untilStep 0 9000000000 1 }}",
        "{{ seq 9000000000 }}",
        "{{ chunk 0 .many }}",
        "{{ " + 'printf "' + "%999999d" * 500 + '"' + " 1" * 500 + " }}",
        '{{ define "R" }}{{ template "R" }}{{ end }}{{ template "R" }}',
        '{{ define "A" }}{{ template "B" }}{{ template "B" }}{{ end }}{{ define "B" }}{{ template "C" }}{{ template "C" }}{{ end }}{{ define "C" }}{{ range until 30000 }}{{ . }}{{ end }}{{ end }}'
        '{{ range until 100 }}{{ template "A" }}{{ end }}',
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ if 1 }}" * 5000 + "{{ end }}" * 5000,
        "{{ if 0 }}" + "{{ else if 0 }}" * 5000 + "{{ end }}",
        '{{ regexMatch "(a{1000}){1000}" .big }}{{ regexFind "(((a{30}){30}){30})" "x" }}',
    ],
)
def test_no_template_takes_long_or_much(source: str) -> None:
    data = {"big": "a" * 1_000_000, "many": ["b" * 100] * 10_000}
    with pytest.raises(TemplateError):
        compiled(source).render(data)


def test_the_text_may_not_grow_beyond_the_limit() -> None:
    with pytest.raises(TemplateError, match="larger than 10 bytes"):
        render("{{ range .list }}12345{{ end }}", VALUES, limit=10)


def test_a_template_changes_its_own_copy_of_the_data() -> None:
    template = compiled('{{ $x := set .map "new" 1 }}{{ $y := merge .map (dict "z" 2) }}{{ .map }}')
    assert template.render(VALUES) == template.render(VALUES) == "map[a:x b:1 new:1 z:2]"
    assert VALUES["map"] == {"b": 1, "a": "x"}


def test_files_of_machines_have_the_functions_of_go_alone() -> None:
    assert render('{{ slice "abc" 1 }}', {}) == "bc"
    with pytest.raises(TemplateError, match="'upper' is not known"):
        render('{{ upper "a" }}', {})


def test_keys_and_values_come_in_order() -> None:
    assert compiled("{{ keys .map }} {{ values .map }}").render({"map": {"b": 1, "a": 2}}) == "[a b] [2 1]"


def test_a_template_is_read_once() -> None:
    assert compiled("{{ .a }}") is compiled("{{ .a }}")


def test_the_page_on_templates_names_every_function_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "templates.md").read_text()
    there, refused = page.split("## Functions")[1].split("These functions are rejected")
    assert set(re.findall(r"`(\w+)`", there)) == set(_ALL)
    assert set(re.findall(r"`(\w+)`", refused)) == set(REFUSED)
