"""Whatever is written into a template, whatever it is rendered with: a text, or a TemplateError."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from golden.template_corpus import DATA, cases
from homeport.machinery.gotemplate import TemplateError, compiled
from homeport.machinery.gotemplate.template import _ALL

PIECES = [
    *("{{", "}}", "{{-", "-}}", " ", "(", ")", "|", ".", "$", ":=", "=", ",", '"', "`", "'", "\\", "\n", "/*", "*/"),
    *("if", "else", "end", "range", "with", "define", "template", "block", "break", "continue", "nil", "true"),
    *(".a", ".a.b", "$x", "1", "-1", "1.5", "1e9", "0x", '"a"', '"%5d"', "`[`", "ü", "\ud800", "\0", "%", "#"),
]
CORPUS = [case["template"] for case in cases()]
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, 1, -1, 2**63, 1e300]))
texts = st.one_of(
    st.text(max_size=12), st.sampled_from(["", "a", "%d", "1.2.3", "[a", "a/b", "{", "v1", "=", "\udcff", "ß"])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(texts, below, max_size=4)),
    max_leaves=8,
)


def outcome(text: str, data: Any) -> None:
    with contextlib.suppress(TemplateError):
        made = compiled(text).render(data)
        made.encode()  # a text that can be sent


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(sorted(_ALL)), texts), max_size=25))
def test_no_text_makes_the_reader_fail(pieces: list[str]) -> None:
    outcome("{{ " + "".join(pieces), {"a": {"b": 1}})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CORPUS), st.integers(0, 200), st.integers(0, 3), st.sampled_from(PIECES))
def test_no_slip_of_the_pen_makes_the_reader_fail(text: str, position: int, cut: int, piece: str) -> None:
    position = min(position, len(text))
    outcome(text[:position] + piece + text[position + cut :], DATA)


FITTING: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "int": st.integers(-3, 20),
    "float": st.floats(),
    "bool": st.booleans(),
    "map": st.dictionaries(texts, values, max_size=4),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A function, and arguments that mostly are of the types it takes."""
    name = draw(st.sampled_from(sorted(_ALL)))
    kinds = list(_ALL[name].params) + [_ALL[name].rest] * draw(st.integers(0, 3) if _ALL[name].rest else st.just(0))
    arguments = [draw(st.one_of(FITTING.get(kind, values), FITTING.get(kind, values), values)) for kind in kinds]
    return name, arguments


@settings(max_examples=500, deadline=None)
@given(calls(), st.booleans())
def test_no_arguments_make_a_function_fail_otherwise(call: tuple[str, list[Any]], piped: bool) -> None:
    name, arguments = call
    listed = [f"(index . {i})" for i in range(len(arguments))]
    if piped and listed:
        outcome(f"{{{{ {listed[-1]} | {name} {' '.join(listed[:-1])} | print }}}}", arguments)
    else:
        outcome(f"{{{{ {name} {' '.join(listed)} }}}}", arguments)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CORPUS), values)
def test_no_data_makes_the_templates_of_the_corpus_fail(text: str, data: Any) -> None:
    outcome(text, data)
    outcome(text, dict.fromkeys(DATA, data))
