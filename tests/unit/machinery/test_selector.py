"""Label and field selectors."""

from __future__ import annotations

import pytest

from homeport.machinery.selector import SelectorError, from_label_selector, parse_fields, parse_labels

LABELS = {"app": "web", "tier": "front", "size": "5", "empty": "", "example.com/team": "a", "in": "x"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("!nope", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("app!=db", True),
        ("nope!=db", True),
        ("app!=web", False),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("nope in (db)", False),
        ("app notin (db, cache)", True),
        ("nope notin (db)", True),
        ("app notin (web)", False),
        ("size>4", True),
        ("size>5", False),
        ("size<10", True),
        ("app>1", False),
        ("empty=", True),
        ("empty in (,a)", True),
        ("empty in ()", True),
        ("empty", True),
        ("app=", False),
        ("example.com/team=a,app", True),
        ("in=x", True),
        ("in in (x)", True),
        ("app=web,tier=back", False),
        (" app , tier ", True),
        ("app=notin", False),
    ],
)
def test_a_label_selector_matches_as_kubernetes_does(text: str, matches: bool) -> None:
    assert parse_labels(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
        ),
        (
            "a=-b",
            'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or consist of alphanumeric characters,',
        ),
        (f"a={'x' * 64}", "must be no more than 63 bytes"),
        ("Ex_ample/a", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("a/b/c", "a valid label key must consist of"),
    ],
)
def test_a_bad_label_selector_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert message in str(caught.value)


def test_the_text_of_a_label_selector_is_canonical() -> None:
    assert str(parse_labels("z, b in (2,1),!c,a==1,d!=2,e>3")) == "a==1,b in (1,2),!c,d!=2,e>3,z"


def test_only_the_empty_selector_is_empty() -> None:
    assert parse_labels("").empty
    assert not parse_labels("a").empty
    assert not from_label_selector(None).empty


def test_a_label_selector_object_combines_labels_and_expressions() -> None:
    selector = from_label_selector(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "app", "operator": "Exists"},
                {"key": "gone", "operator": "DoesNotExist"},
                {"key": "size", "operator": "NotIn", "values": ["1"]},
            ],
        }
    )
    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "gone": ""})
    assert not selector.matches({"app": "web"})


def test_an_absent_selector_object_selects_nothing_and_an_empty_one_everything() -> None:
    assert not from_label_selector(None).matches({})
    assert from_label_selector({}).matches({})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Near"}, '"Near" is not a valid label selector operator'),
        ({"key": "a", "operator": "In"}, "values set can't be empty"),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, "values set must be empty for exists"),
    ],
)
def test_a_bad_expression_is_refused(expression: dict[str, object], message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        from_label_selector({"matchExpressions": [expression]})


def test_field_selectors_match_and_name_their_fields() -> None:
    selector = parse_fields("metadata.name=a,status.phase!=Running,spec.node==n")
    assert selector.matches({"metadata.name": "a", "status.phase": "Pending", "spec.node": "n"})
    assert not selector.matches({"metadata.name": "a", "status.phase": "Running", "spec.node": "n"})
    assert selector.names() == {"metadata.name", "status.phase", "spec.node"}
    assert selector.require("metadata.name") == "a"
    assert selector.require("status.phase") is None


def test_an_absent_field_counts_as_empty() -> None:
    assert parse_fields("spec.node=").matches({})
    assert parse_fields("spec.node!=x").matches({})


def test_escaped_characters_belong_to_the_value() -> None:
    selector = parse_fields(r"a=x\,y\=z\\,b=1")
    assert selector.require("a") == "x,y=z\\"
    assert parse_fields(str(selector)) == selector


def test_an_empty_field_selector_selects_everything() -> None:
    assert parse_fields("").empty
    assert parse_fields(",").empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == message
