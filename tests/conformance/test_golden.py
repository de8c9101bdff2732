"""The client suite's own judgement: what it excuses, and that it excuses nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client.golden import differences

REJECTED = "the server rejected our request due to an error in our request"
HEAD = "Forbidden: spec is immutable after creation"
DIFF = '\n@@ -1,6 +1,6 @@\n {\n  "AccessModes": [\n-  "ReadWriteOnce"\n+  "ReadOnlyMany"\n  ],\n'
TWICE = {"details": {"causes": [{"field": "a", "message": "x"}, {"field": "a", "message": "x"}]}}
ONCE = {"details": {"causes": [{"field": "a", "message": "x"}]}}


@pytest.mark.parametrize(
    ("real", "ours"),
    [
        ('patch: Invalid value: "OBJECT": json: bad', 'patch: Invalid value: "{...}": json: bad'),
        ('no kind "A" is registered for version "v1" in scheme "SCHEME"', 'no kind "A" is registered for version "v1"'),
        ("converting (v1.A) to (core.B): unknown conversion", "the path takes a B, the body is a A"),
        (REJECTED, f"{REJECTED}: testing value /data/k failed: test failed"),
        (HEAD + DIFF, HEAD),
        (HEAD + DIFF, f"{HEAD}\nspec.accessModes"),
        (TWICE, ONCE),
        ({"code": 500, "message": "bad key"}, {"code": 400, "message": "bad key", "reason": "BadRequest"}),
        ({"details": {}}, {}),
    ],
)
def test_words_of_ours_that_are_better_are_excused(real: Any, ours: Any) -> None:
    assert differences(real, ours, ".x") == []


@pytest.mark.parametrize(
    ("real", "ours"),
    [
        ('patch: Invalid value: "OBJECT": json: bad', 'patch: Invalid value: "{...}": json: worse'),
        ('Invalid value: "x": bad', 'Invalid value: "{...}": bad'),
        ("converting (v1.A) to (core.B): unknown conversion", "the path takes a A, the body is a B"),
        (REJECTED, "the patch failed"),
        (REJECTED + ": why", REJECTED),
        (HEAD + DIFF, "Forbidden: no"),
        (HEAD, f"{HEAD}\nspec.accessModes"),
        (ONCE, {"details": {"causes": [{"field": "a", "message": "x"}, {"field": "b", "message": "x"}]}}),
        ({"code": 500, "message": "bad key"}, {"code": 400, "message": "worse key"}),
        ({"code": 409, "message": "bad key"}, {"code": 400, "message": "bad key"}),
        ({"details": {"name": "a"}}, {}),
        ({"metadata": {}}, {}),
    ],
)
def test_any_other_difference_is_reported(real: Any, ours: Any) -> None:
    assert differences(real, ours, ".x") != []
