"""fmt.Sprintf: what stands between % and a verb, and the signs of what does not fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.printer import LARGEST, Form, Printer, shown
from homeport.machinery.gotemplate.value import kind_of, type_of

_WIDEST: Final = 1_000_000  # where Go stops reading digits


def sprintf(form: str, *values: object) -> str:
    return _Sprintf(form, values).run()


class _Sprintf:
    def __init__(self, form: str, values: Sequence[Any]) -> None:
        self._form = form
        self._values = values
        self._taken = 0
        self._reordered = False
        self._good = True
        self._position = 0
        self._printer = Printer()

    def run(self) -> str:
        out: list[str] = []
        size = 0
        while self._position < len(self._form):
            mark = self._form.find("%", self._position)
            if mark < 0:
                out.append(self._form[self._position :])
                break
            out.append(self._form[self._position : mark])
            self._position = mark + 1
            out.append(self._verb())
            size += len(out[-1]) + len(out[-2])
            if size > LARGEST:
                raise CallError(f"the text becomes longer than {LARGEST} characters")
        if not self._reordered and self._taken < len(self._values):
            extra = ", ".join(
                "<nil>" if each is None else f"{type_of(each)}={shown(each)}" for each in self._values[self._taken :]
            )
            out.append(f"%!(EXTRA {extra})")
        return "".join(out)

    def _peek(self) -> str:
        return self._form[self._position : self._position + 1]

    def _verb(self) -> str:
        self._good, after_index = True, False
        form, noise = self._flags(), ""
        after_index = self._index()
        form.width, wide, after_index = self._measure(after_index)
        noise += wide
        if form.width is not None and form.width < 0:
            form.width, form.minus, form.zero = -form.width, True, False
        if self._peek() == ".":
            self._position += 1
            if after_index:
                self._good = False
            after_index = self._index()
            form.precision, narrow, after_index = self._measure(after_index, precision=True)
            noise += narrow
            if form.precision is None and not narrow:
                form.precision = 0
        if not after_index:
            self._index()
        if self._position >= len(self._form):
            return noise + "%!(NOVERB)"
        verb = self._form[self._position]
        self._position += 1
        if verb == "%":
            return noise + "%"
        if not self._good:
            return noise + f"%!{verb}(BADINDEX)"
        if self._taken >= len(self._values):
            return noise + f"%!{verb}(MISSING)"
        value = self._values[self._taken]
        self._taken += 1
        if verb == "v":
            form.sharp_v, form.sharp = form.sharp, False
            form.plus_v, form.plus = form.plus, False
        return noise + self._printer.value(value, verb, form, 0)

    def _flags(self) -> Form:
        form = Form()
        names = {"+": "plus", "-": "minus", "#": "sharp", " ": "space", "0": "zero"}
        while self._peek() in names and self._peek():
            setattr(form, names[self._peek()], True)
            self._position += 1
        return form

    def _index(self) -> bool:
        """[n]: which value comes next."""
        if self._peek() != "[":
            return False
        self._reordered = True
        end = self._form.find("]", self._position)
        if end < 0:
            self._good = False
            self._position += 1
            return False
        inner = self._form[self._position + 1 : end]
        self._position = end + 1
        if not (inner.isascii() and inner.isdigit()) or not 1 <= int(inner[:9]) <= len(self._values):
            self._good = False
            return False
        self._taken = int(inner) - 1
        return True

    def _measure(self, after_index: bool, *, precision: bool = False) -> tuple[int | None, str, bool]:
        """A width or precision: digits, or * for the next value."""
        if self._peek() == "*":
            self._position += 1
            value: Any = self._values[self._taken] if self._taken < len(self._values) else None
            self._taken = min(self._taken + 1, len(self._values))
            good = kind_of(value) in ("int", "int64", "int32", "uint8", "uint64") and abs(value) <= _WIDEST
            if not good or (precision and value < 0):
                return None, "%!(BADPREC)" if precision else "%!(BADWIDTH)", False
            return int(value), "", False
        start = self._position
        while self._peek().isascii() and self._peek().isdigit():
            self._position += 1
        digits = self._form[start : self._position].lstrip("0") or self._form[start : self._position][:1]
        if digits and after_index:
            self._good = False
        if not digits:
            return None, "", after_index
        if len(digits) > 8 or int(digits[:-1] or "0") > _WIDEST:
            self._position = len(self._form)
            return None, "", False
        return int(digits), "", False
