"""Match conditions of webhooks, in CEL. `authorizer` is not offered: a condition that uses it can't be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.apiserver.webhook.hook import Condition, ConditionError
from homeport.machinery.cel import BOOL, DYN, CelError, compile

_VARIABLES = {"object": DYN, "oldObject": DYN, "request": DYN}
_NOT_IN_REQUEST = ("object", "oldObject")


def compile_condition(expression: str) -> Condition:
    """Raises ConditionError if the text is not an expression, or its result is not a boolean."""
    try:
        program = compile(expression, _VARIABLES)
    except CelError as broken:
        raise ConditionError(f"compilation failed: {broken}") from broken
    if program.type not in (BOOL, DYN):
        raise ConditionError("compilation failed: must evaluate to bool")

    def holds(variables: Mapping[str, Any]) -> bool:
        request = {key: value for key, value in variables["request"].items() if key not in _NOT_IN_REQUEST}
        try:
            result = program.evaluate({**variables, "request": request})
        except CelError as failed:
            raise ConditionError(str(failed)) from failed
        if not isinstance(result, bool):
            raise ConditionError("must evaluate to bool")
        return result

    return holds
