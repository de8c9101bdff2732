"""The errors of compiling and of evaluating an expression."""

from __future__ import annotations


class CelError(Exception):
    """An expression that can't be compiled or evaluated. A compile error says where in the text."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        self.reason = message
        self.line = line
        self.column = column
        self.cost = 0  # what the evaluation had used up when it failed
        if line > 1:
            message = f"{message} (line {line}, col {column})"
        elif column:
            message = f"{message} (col {column})"
        super().__init__(message)

    def within(self, text: str) -> str:
        """The message with the line of the expression that it is about, and a mark below it."""
        if not self.column:
            return self.reason
        line = text.split("\n")[max(self.line, 1) - 1]
        mark = "." * (self.column - 1) + "^"
        return f"ERROR: <input>:{max(self.line, 1)}:{self.column}: {self.reason}\n | {line}\n | {mark}"


class EvaluationError(CelError):
    """An error value of the language: `&&`, `||`, `all` and `exists` may absorb it."""


class CostLimitExceeded(CelError):
    """The expression used up its budget. Nothing absorbs it, or a costly rule could not be stopped."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


def no_such_key(key: object) -> EvaluationError:
    return EvaluationError(f"no such key: {key}")
