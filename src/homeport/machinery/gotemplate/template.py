"""Templates, read once and rendered often."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from homeport.machinery.gotemplate.builtin import BUILTINS
from homeport.machinery.gotemplate.error import TemplateError
from homeport.machinery.gotemplate.execute import execute
from homeport.machinery.gotemplate.function import Function
from homeport.machinery.gotemplate.parser import parse
from homeport.machinery.gotemplate.sprig import SPRIG
from homeport.machinery.gotemplate.sprig.mapping import CHANGES, copied

_LONGEST = 1 << 20  # characters of a template
_ALL: dict[str, Function] = {**BUILTINS, **SPRIG}


class Template:
    def __init__(self, text: str, *, plain: bool = False) -> None:
        self._functions = BUILTINS if plain else _ALL
        if len(text) > _LONGEST:
            raise TemplateError(1, f"a template has at most {_LONGEST} characters")
        self._tree = parse(text, self._functions)

    def render(self, data: object, *, limit: int = 0, strict: bool = False) -> str:
        """The text for `data`, which stays as it is. Raises TemplateError.

        `limit` is for the bytes of the text. `strict`: a key that a map has not is an error instead of `<no value>`.
        """
        given = copied(data) if self._tree.functions & CHANGES else data
        return execute(self._tree, self._functions, given, limit=limit, strict=strict)


@lru_cache(maxsize=512)
def compiled(text: str, *, plain: bool = False) -> Template:
    """`plain`: without the functions of sprig. Raises TemplateError."""
    return Template(text, plain=plain)


def render(source: str, values: Mapping[str, Any], *, limit: int = 0) -> str:
    """With Go's own functions alone."""
    return compiled(source, plain=True).render(values, limit=limit)
