"""One entry of `x-kubernetes-validations`, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from homeport.machinery.cel import types as t
from homeport.machinery.cel.cost.expression import estimate
from homeport.machinery.cel.errors import CelError
from homeport.machinery.cel.fieldpath import BadPath, resolve
from homeport.machinery.cel.program import Program
from homeport.machinery.cel.schema import Declared

REASONS: Final = ("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate")
MAX_MESSAGE: Final = 5 * 1024


class RuleProblem(NamedTuple):
    """Why a rule can't be used, and where it stands in the CustomResourceDefinition."""

    path: str
    message: str


class Rule:
    """A rule with its programs. `broken` says why it never can be evaluated."""

    def __init__(self, entry: Mapping[str, Any], declared: Declared, schema: Mapping[str, Any]) -> None:
        self.text = str(entry.get("rule") or "").strip()
        self.message = str(entry.get("message") or "").strip()
        self.reason = str(entry.get("reason") or "FieldValueInvalid")
        self.optional_old = bool(entry.get("optionalOldSelf"))
        self.problems: list[tuple[str, str]] = []
        self.broken = ""
        self.field_path = ""
        self.program: Program | None = None
        self.message_program: Program | None = None
        self.cost = self.message_cost = 0
        self._check_words(entry)
        self._resolve_path(entry, schema)
        if not self.problems:
            self._compile(entry, declared)

    @property
    def uses_old(self) -> bool:
        return self.program is not None and "oldSelf" in self.program.used

    @property
    def label(self) -> str:
        """How messages refer to the rule."""
        return self.message or self.text

    @property
    def default_message(self) -> str:
        return self.message or f"failed rule: {self.text}"

    def _check_words(self, entry: Mapping[str, Any]) -> None:
        message = str(entry.get("message") or "")
        if not self.text:
            self.problems.append(("rule", "rule is not specified"))
        elif message and not self.message:
            self.problems.append(("message", "must be non-empty if specified"))
        elif _has_newlines(self.message):
            self.problems.append(("message", "must not contain line breaks"))
        elif _has_newlines(self.text) and not self.message:
            self.problems.append(("message", "message must be specified if rule contains line breaks"))
        expression = str(entry.get("messageExpression") or "")
        if expression and not expression.strip():
            self.problems.append(("messageExpression", "messageExpression must be non-empty if specified"))
        if self.reason not in REASONS:
            supported = ", ".join(f'"{each}"' for each in sorted(REASONS))
            self.problems.append(("reason", f'Unsupported value: "{self.reason}": supported values: {supported}'))

    def _resolve_path(self, entry: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        field_path = str(entry.get("fieldPath") or "")
        if not field_path:
            return
        if not field_path.strip():
            self.problems.append(("fieldPath", "must be non-empty if specified"))
        elif _has_newlines(field_path):
            self.problems.append(("fieldPath", "must not contain line breaks"))
        else:
            try:
                self.field_path = resolve(field_path, schema)
            except BadPath:
                self.problems.append(("fieldPath", "must be a valid path"))

    def _compile(self, entry: Mapping[str, Any], declared: Declared) -> None:
        try:
            self.program = _program(self.text, declared, optional_old=self.optional_old)
        except CelError as error:
            self._break("rule", f"compilation failed: {error.within(self.text)}")
            return
        if self.program.type.kind != "bool":
            self.program = None
            self._break("rule", "cel expression must evaluate to a bool")
            return
        self.cost = estimate(self.program.root, {"self": declared, "oldSelf": declared})
        if not self.uses_old and entry.get("optionalOldSelf") is not None:
            self.problems.append(("optionalOldSelf", "may not be set if oldSelf is not used in rule"))
        expression = str(entry.get("messageExpression") or "").strip()
        if expression:
            self._compile_message(expression, declared)

    def _compile_message(self, expression: str, declared: Declared) -> None:
        try:
            program = _program(expression, declared, optional_old=self.optional_old)
        except CelError as error:
            self.problems.append(
                ("messageExpression", f"messageExpression compilation failed: {error.within(expression)}")
            )
            return
        if program.type.kind != "string":
            self.problems.append(("messageExpression", "messageExpression must evaluate to a string"))
            return
        self.message_program = program
        self.message_cost = estimate(program.root, {"self": declared, "oldSelf": declared})

    def _break(self, where: str, message: str) -> None:
        self.broken = message
        self.problems.append((where, message))


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _program(text: str, declared: Declared, *, optional_old: bool) -> Program:
    raw = {"self": declared} if optional_old else {"self": declared, "oldSelf": declared}
    old = t.optional_of(declared.type) if optional_old else declared.type
    return Program(text, {"self": declared.type, "oldSelf": old}, raw, bind=False)
