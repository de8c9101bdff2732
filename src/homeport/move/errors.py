"""Why a move does not start or does not continue."""

from __future__ import annotations

from collections.abc import Iterable


class MoveRefused(Exception):
    """Each problem names an object and what to do about it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
