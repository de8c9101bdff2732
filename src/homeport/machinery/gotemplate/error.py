from __future__ import annotations


class TemplateError(ValueError):
    """A template that can't be read or carried out; names the line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class PlacedError(TemplateError):
    """A TemplateError in one of several templates: the file and line are those of the innermost one."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(line, message)
        self.file = file
        self.message = message


class CallError(ValueError):
    """A function failed; the caller adds the line."""
