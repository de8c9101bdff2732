"""Values as Go prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\d+)?(?:\.(?P<precision>\d*))?(?P<verb>[a-zA-Z%])")


def shown(value: Any) -> str:
    """As %v does."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{shown(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(shown, value)) + "]"
    return str(value)


def _float(value: float) -> str:
    """Shortest, with an exponent from 21 digits on, as %v of a float64."""
    text = repr(value)
    exponent = 0 if value == 0 else int(f"{value:e}".partition("e")[2])
    if exponent < -4 or exponent >= 21:
        mantissa, _, _ = f"{value:.17e}".partition("e")
        digits = text.replace(".", "").replace("-", "").partition("e")[0].strip("0") or "0"
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{'-' if value < 0 else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if "e" in text:
        text = f"{value:.0f}"
    return text.removesuffix(".0")


def sprintf(form: str, *values: Any) -> str:
    taken = 0

    def put(found: re.Match[str]) -> str:
        nonlocal taken
        verb = found["verb"]
        if verb == "%":
            return "%"
        if taken >= len(values):
            return f"%!{verb}(MISSING)"
        value = values[taken]
        taken += 1
        return _padded(_formatted(verb, value, found), found)

    text = _VERB.sub(put, form)
    extra = [f"{_type(each)}={shown(each)}" for each in values[taken:]]
    return f"{text}%!(EXTRA {', '.join(extra)})" if extra else text


def _formatted(verb: str, value: Any, found: re.Match[str]) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    precision = int(found["precision"] or 0) if found["precision"] is not None else None
    if verb in "vs" and (verb == "v" or isinstance(value, str | list | Mapping)):
        text = shown(value)
        return text if precision is None or verb == "v" else text[:precision]
    if verb == "q" and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if verb == "t" and isinstance(value, bool):
        return shown(value)
    if verb in "dxXob" and whole:
        sign = "+" if "+" in found["flags"] and value >= 0 else ""
        return sign + format(value, verb)
    if verb in "xX" and isinstance(value, str):
        text = value.encode().hex()
        return text.upper() if verb == "X" else text
    if verb == "c" and whole:
        return chr(value)
    if verb in "feEgG" and isinstance(value, float):
        sign = "+" if "+" in found["flags"] and value >= 0 else ""
        return sign + (
            shown(value)
            if verb in "gG" and precision is None
            else f"{value:.{6 if precision is None else precision}{verb}}"
        )
    return f"%!{verb}({_type(value)}={shown(value)})"


def _padded(text: str, found: re.Match[str]) -> str:
    width = int(found["width"] or 0)
    if "-" in found["flags"]:
        return text.ljust(width)
    if "0" in found["flags"] and found["verb"] in "dxXobfeEgG":
        return text.zfill(width)
    return text.rjust(width)


def _type(value: Any) -> str:
    if value is None:
        return "<nil>"
    names = ((bool, "bool"), (int, "int"), (float, "float64"), (str, "string"), (Mapping, "map[string]interface {}"))
    return next((name for kind, name in names if isinstance(value, kind)), "[]interface {}")
