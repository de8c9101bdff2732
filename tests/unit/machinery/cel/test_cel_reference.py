"""Kubernetes' own expressions and the rules of published CustomResourceDefinitions.

They are no part of the project: HOMEPORT_REFERENCE names a folder with cel/kubernetes-expressions.json and crds/.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeport.machinery.cel import DYN, compile, compile_rules

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE is not set")


def expressions(kind: str) -> list[Any]:
    found: dict[str, list[Any]] = json.loads(Path(REFERENCE, "cel/kubernetes-expressions.json").read_text())
    assert found[kind]
    return found[kind]


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(Path(REFERENCE, "crds").glob("*/*")):
        for document in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if document and document.get("kind") == "CustomResourceDefinition":
                for version in document["spec"]["versions"]:
                    name = f"{document['metadata']['name']}/{version['name']}"
                    yield name, version["schema"]["openAPIV3Schema"]


def test_expressions_without_variables_are_true() -> None:
    wrong = [each for each in expressions("literal") if compile(each).evaluate() is not True]
    assert wrong == []


def test_all_expressions_compile() -> None:
    for each in expressions("all"):
        compile(each, {"self": DYN, "oldSelf": DYN})


def test_library_expressions_have_their_value() -> None:
    for expression, value, _ in expressions("lib"):
        assert compile(expression).evaluate() == value, expression


def test_rules_of_published_definitions_compile_within_the_limits() -> None:
    with_rules = 0
    for name, schema in schemas():
        rules, problems = compile_rules(schema)
        assert problems == [], name
        with_rules += rules is not None
    assert with_rules > 0
