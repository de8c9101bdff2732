from __future__ import annotations

import random

import pytest

from homeport.capi.object.naming import TemplateError, check, random_suffix, render, simple


def test_a_suffix_has_five_letters_of_which_no_word_can_be_made() -> None:
    assert all(len(random_suffix()) == 5 and not set(random_suffix()) & set("aeiou013") for _ in range(50))


def test_the_same_seed_gives_the_same_names() -> None:
    random.seed(7)
    first = simple("a")
    random.seed(7)
    assert simple("a") == first


def test_a_long_prefix_is_cut_so_that_the_suffix_fits() -> None:
    assert len(simple("x" * 100)) == 63


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ .cluster.name }}-{{ .random }}", "prod-abcde"),
        ("{{.cluster.name}}-x", "prod-x"),
        ("{{- .cluster.name -}}", "prod"),
        ("{{ if eq .cluster.name `prod` }}p{{ else }}t{{ end }}-{{ .random }}", "p-abcde"),
        ('{{ printf "%.2s" .cluster.name }}-{{ slice .random 0 3 }}', "pr-abc"),
        ("{{ .machineSet.name }}-{{ .random }}", f"{'s' * 57}-abcde"),
    ],
)
def test_templates_are_filled(template: str, name: str) -> None:
    assert render(template, {"cluster.name": "prod", "machineSet.name": "s" * 70}, suffix="abcde") == name


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("{{ .machine.name }}", r"no key 'machine'; supported fields: {{ \.cluster\.name }}, {{ \.random }}"),
        ("{{ .cluster.name | upper }}", "'upper' is not known"),
        ("{{ if .cluster.name }}a", "if is not closed"),
        ("{{ .cluster }}", "is not a valid name"),
        ("{{ .cluster.name }}_{{ .random }}", "is not a valid name"),
    ],
)
def test_a_template_that_can_not_be_used_says_what_may_stand_in_it(template: str, what: str) -> None:
    with pytest.raises(TemplateError, match=what):
        render(template, {"cluster.name": "prod"})
    assert check(template, ("cluster.name",), random_needed=False)


def test_a_template_needs_something_that_differs() -> None:
    assert "all names" in check("{{ .cluster.name }}", ("cluster.name",))
    assert check("{{ .cluster.name }}-{{ .random }}", ("cluster.name",)) == ""
