from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST: Final = 4000  # characters: it becomes the message of a condition, and a chart may put anything into it


class ChartError(ValueError):
    """A chart that can't be loaded or rendered. The text names the chart, file and line, and says what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")


def shallow(function: Callable[P, R]) -> Callable[P, R]:
    """Charts and values that are nested without end are an error like others."""

    @functools.wraps(function)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise ChartError("the chart or its values are nested too deeply") from None

    return bounded
