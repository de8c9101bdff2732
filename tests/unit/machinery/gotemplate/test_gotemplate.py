from __future__ import annotations

import pytest

from homeport.machinery.gotemplate import TemplateError, render

VALUES = {"controlPlane": {"version": "v1.33.1"}, "list": [1, 2, 3], "map": {"b": 1, "a": "x"}, "no": False, "f": 1.5}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("{{ .controlPlane.version }}", "v1.33.1"),
        ("{{.nothing}}", "<no value>"),
        ("a {{- if .nothing }} 1 {{- else if .controlPlane }} 2{{ else }} 3{{ end }}", "a 2"),
        ("{{ if not .no }}yes{{ end }}", "yes"),
        ("{{ with .controlPlane }}{{ .version }}{{ end }}", "v1.33.1"),
        ("{{ with .nothing }}x{{ else }}none{{ end }}", "none"),
        ("{{ range $i, $e := .list }}{{ if $i }},{{ end }}{{ $e }}{{ end }}", "1,2,3"),
        ("{{ range .list }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ . }}{{ end }}", "13"),
        ("{{ range .list }}{{ if eq . 2 }}{{ break }}{{ end }}{{ . }}{{ end }}", "1"),
        ("{{ range $k, $v := .map }}{{ $k }}={{ $v }} {{ end }}", "a=x b=1 "),
        ("{{ range .nothing }}x{{ else }}empty{{ end }}", "empty"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", "1"),
        ("{{ range .list }}{{ $.controlPlane.version }};{{ end }}", "v1.33.1;v1.33.1;v1.33.1;"),
        ("x \n{{- /* gone */ -}}\n y", "xy"),
        ('{{ .controlPlane.version | printf "%q" }}', '"v1.33.1"'),
        ('{{ printf "%05d|%-3s|%v|%5.2f" 42 "a" .list .f }}', "00042|a  |[1 2 3]| 1.50"),
        ('{{ "}}" }}{{ `a"b` }}', '}}a"b'),
        ('{{ index .list 1 }}{{ index .map "a" }}', "2x"),
        ('{{ slice "abcdef" 1 3 }}{{ len "ü" }}', "bc2"),
        ("{{ and .list .no }} {{ or .no .f }}", "false 1.5"),
        ('{{ if and .controlPlane (eq .controlPlane.version "v1.33.1") }}same{{ end }}', "same"),
        ('{{ lt 1 2 }} {{ ge 2 2 }} {{ ne "a" "b" }} {{ eq 1 2 1 }}', "true true true true"),
        ("{{ (index .list 0) }}{{ 0x10 }}{{ 1_000 }}", "1161000"),
        ("{{ .map }}{{ nil | print }}", "map[a:x b:1]<nil>"),
        ('{{ html "<a>" }}{{ urlquery "a b" }}', "&lt;a&gt;a+b"),
    ],
)
def test_templates_give_what_go_gives(source, text):
    assert render(source, VALUES) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n{{ .nothing.more }}", "line 2: nil pointer"),
        ("{{ .controlPlane.version.x }}", "can't take field x"),
        ("{{ if .x }}", "not closed"),
        ("{{ end }}", "without a beginning"),
        ("{{ }}", "empty"),
        ("{{ .a ", "'}}' is missing"),
        ("{{ unknown 1 }}", "function 'unknown' is not known"),
        ("{{ $x }}", r"undefined variable \$x"),
        ("{{ index .list 9 }}", "out of range"),
        ('{{ eq 1 "a" }}', "incompatible types"),
        ("{{ break }}", "outside of a range"),
        ('{{ template "x" }}', "not supported"),
        ("{{ .list 1 }}", "only functions take arguments"),
        ("{{ range 200000000 }}{{ end }}", "does not come to an end"),
    ],
)
def test_what_go_refuses_is_refused_with_the_line(source, message):
    with pytest.raises(TemplateError, match=message):
        render(source, VALUES)


def test_the_text_may_not_grow_beyond_the_limit():
    with pytest.raises(TemplateError, match="larger than 10 bytes"):
        render("{{ range .list }}12345{{ end }}", VALUES, limit=10)
