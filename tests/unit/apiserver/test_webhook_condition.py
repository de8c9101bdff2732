from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.webhook.condition import compile_condition
from homeport.apiserver.webhook.hook import ConditionError, parse_configuration

VARIABLES: dict[str, Any] = {
    "object": {"metadata": {"name": "a", "labels": {"team": "x"}}, "spec": {"replicas": 3}},
    "oldObject": None,
    "request": {"operation": "CREATE", "userInfo": {"username": "anna", "groups": ["devs"]}, "object": {}},
}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("object.spec.replicas > 2", True),
        ("object.metadata.labels.team == 'y'", False),
        ("oldObject == null", True),
        ("request.operation != 'DELETE' && !('system:nodes' in request.userInfo.groups)", True),
        ("has(object.metadata.annotations)", False),
        ("has(request.object)", False),
    ],
)
def test_a_condition_sees_the_object_and_the_request(expression: str, holds: bool) -> None:
    assert compile_condition(expression)(VARIABLES) is holds


@pytest.mark.parametrize(
    "expression", ["object.", "'text'", "unknown == 1", "authorizer.path('/x').check('get').allowed()"]
)
def test_an_invalid_condition_is_refused(expression: str) -> None:
    with pytest.raises(ConditionError):
        compile_condition(expression)


@pytest.mark.parametrize("expression", ["object.spec.missing == 1", "object.spec.replicas"])
def test_a_condition_that_can_not_be_evaluated_says_so(expression: str) -> None:
    condition = compile_condition(expression)
    with pytest.raises(ConditionError):
        condition(VARIABLES)


def test_a_broken_condition_in_a_configuration_fails_when_it_is_used() -> None:
    webhook = {"name": "w", "matchConditions": [{"name": "n", "expression": "object."}]}
    obj = {"metadata": {"name": "c"}, "webhooks": [webhook]}
    (parsed,) = parse_configuration(obj, mutating=False, compile_condition=compile_condition)
    with pytest.raises(ConditionError, match="compilation failed"):
        parsed.conditions[0][1](VARIABLES)
