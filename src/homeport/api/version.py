"""Older versions of kinds, as what differs from the newest: only their schemas are used, for objects are converted."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from homeport.api.meta import Model, Object


def older(kind: type[Object], version: str, replaced: Mapping[Any, Any]) -> type[Object]:
    """The kind in an older version: the same fields, but with other types for those in `replaced`, however deep.

    A replacement that is Annotated brings all of its marks; another one keeps those of the field.
    """
    made: type[Object] = _struct(kind, replaced)
    if made is kind:  # the version is a mark of the class
        made = _define(kind, {})
    made.__resource__ = msgspec.structs.replace(kind.__resource__, version=version)
    return made


def _struct(cls: Any, replaced: Mapping[Any, Any]) -> Any:
    """The struct itself if nothing in it is replaced."""
    hints = get_type_hints(cls, include_extras=True)
    changed = {field.name: _hint(hints[field.name], replaced) for field in msgspec.structs.fields(cls)}
    changed = {name: hint for name, hint in changed.items() if hint is not hints[name]}
    return _define(cls, changed) if changed else cls


def _hint(hint: Any, replaced: Mapping[Any, Any]) -> Any:
    if hint in replaced:
        return replaced[hint]
    if isinstance(hint, type) and issubclass(hint, Model):
        return _struct(hint, replaced)
    args = get_args(hint)
    if get_origin(hint) is Annotated:
        inner = _hint(args[0], replaced)
        if inner is args[0]:
            return hint
        return inner if get_origin(inner) is Annotated else Annotated[(inner, *args[1:])]
    made = tuple(_hint(arg, replaced) for arg in args)
    if all(new is old for new, old in zip(made, args, strict=True)):
        return hint
    if get_origin(hint) in (Union, types.UnionType):
        return functools.reduce(operator.or_, made)
    return get_origin(hint)[made]


def _define(cls: Any, changed: Mapping[str, Any]) -> Any:
    """A struct of the same name and description with the fields of `cls`, of which some have another type."""
    base = Object if issubclass(cls, Object) else Model
    hints = get_type_hints(cls, include_extras=True)
    fields = []
    for field in msgspec.structs.fields(cls):
        if field.name in base.__struct_fields__:
            continue
        hint = changed.get(field.name, hints[field.name])
        fields.append((field.name, hint, _default(field, hint, field.name in changed)))
    namespace = {name: cls.__dict__[name] for name in ("__doc__", "__schema__") if cls.__dict__.get(name)}
    return msgspec.defstruct(cls.__name__, fields, bases=(base,), module=cls.__module__, namespace=namespace)


def _default(field: msgspec.structs.FieldInfo, hint: Any, changed: bool) -> Any:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if field.default_factory is msgspec.NODEFAULT:
        return msgspec.field(name=field.encode_name, default=field.default)
    is_struct = changed and isinstance(plain, type) and issubclass(plain, Model)
    return msgspec.field(name=field.encode_name, default_factory=plain if is_struct else field.default_factory)
