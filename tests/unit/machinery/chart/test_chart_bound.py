"""Templates that would not end, or would fill the memory, end with an error that names the file."""

from __future__ import annotations

import pytest

from homeport.machinery.chart import ChartError, ReleaseInfo, load_chart, render

BOMBS = {
    "loops": "{{ range until 9999 }}{{ range until 9999 }}{{ . }}{{ end }}{{ end }}",
    "include": '{{ define "x" }}{{ include "x" . }}{{ include "x" . }}{{ end }}{{ include "x" . }}',
    "template": '{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}',
    "tpl": '{{ $x := dict "t" "" }}{{ $_ := set $x "t" "{{ tpl .t . }}{{ tpl .t . }}" }}{{ tpl $x.t $x }}',
    "doubling": '{{ $x := dict "s" "xxxxxxxx" }}{{ range until 60 }}{{ $_ := set $x "s" (print $x.s $x.s) }}{{ end }}',
    "unfolding": '{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toYaml $x }}',
    "json": '{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}',
    "toml": '{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toToml $x }}',
    "printed": '{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $x }}',
    "copied": '{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ deepCopy $x | len }}',
    "itself": '{{ $x := dict "a" 1 }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}',
    "growing": "{{ $x := list }}{{ range until 90000 }}{{ $x = append $x . }}{{ end }}",
    "parsed": '{{ $x := tpl (repeat 400000 "{{ 1 }}") . }}',
    "repeated": '{{ repeat 999999999 "x" }}',
    "random": "{{ randAlphaNum 999999999 }}",
    "until": "{{ until 999999999 }}",
    "hashes": '{{ range until 100 }}{{ bcrypt "x" }}{{ end }}',
    "aliases": '{{ fromYaml "a: &a [x,x,x,x,x,x,x,x,x]\\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\n'
    "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\\n"
    'g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]" | toJson | fail }}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_template_without_end_is_stopped(name: str) -> None:
    chart = load_chart(
        {"Chart.yaml": b"apiVersion: v2\nname: bomb\nversion: 1.0.0\n", "templates/t.yaml": BOMBS[name].encode()}
    )
    with pytest.raises(ChartError, match=r"bomb/templates/t\.yaml, line 1"):
        render(chart, {}, ReleaseInfo("web", seed=b"secret"))


def test_templates_with_too_many_actions_are_refused_before_they_are_parsed() -> None:
    files = {f"templates/{number}.yaml": b"{{ 1 }}" * 100_000 for number in range(10)}
    chart = load_chart({"Chart.yaml": b"apiVersion: v2\nname: bomb\nversion: 1.0.0\n", **files})
    with pytest.raises(ChartError, match=r"bomb/templates/\d\.yaml: the templates of the chart have too many actions"):
        render(chart, {}, ReleaseInfo("web", seed=b"secret"))
