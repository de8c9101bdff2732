"""Values that an older version can't hold are kept in an annotation: their path, and what they were converted to.

On the way back a value is put where it stood only if there is still what the conversion had made of it: whoever changed
it in the meantime meant the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from homeport.capi.conversion.codec import same_duration

Json = dict[str, Any]
Loss = dict[str, Any]  # {"at": path, "is": value, "was": value}; a value that is absent is left out

ANNOTATION = "cluster.x-k8s.io/conversion-data"

_ABSENT: Any = object()
_IDENTITIES = ("name", "conditionType", "type", "key", "path", "hostPath", "device")
_PARTS = ("metadata", "apiVersion", "kind")  # of an object: never compared


def find_losses(have: Mapping[str, Any], want: Mapping[str, Any], *, zeros: bool) -> list[Loss]:
    """What is to be changed in `have` to make it `want`.

    Without `zeros`, spellings don't count: an empty value is an absent one, `10m` is `10m0s`.
    """
    return list(_between(_without_meta(have), _without_meta(want), (), zeros))


def restore(obj: Json, losses: Sequence[Loss]) -> None:
    for loss in losses:
        _restore(obj, loss)


def read_losses(annotation: str) -> list[Loss] | Json:
    """A whole object is what other implementations keep there. Raises ValueError."""
    try:
        found = orjson.loads(annotation)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"annotation {ANNOTATION} is not valid JSON: {error}") from None
    if isinstance(found, dict):
        return found
    if isinstance(found, list) and all(_is_loss(loss) for loss in found):
        return found
    raise ValueError(f"annotation {ANNOTATION} can't be read: remove it")


def _is_loss(found: Any) -> bool:
    """Anybody may write annotations: nothing is taken from one that conversion would not have put there."""
    path = found.get("at") if isinstance(found, dict) else None
    return (
        isinstance(path, list)
        and bool(path)
        and isinstance(path[0], str)
        and path[0] not in _PARTS
        and all(isinstance(step, str | dict) for step in path)
    )


def render_losses(losses: Sequence[Loss]) -> str:
    return orjson.dumps(losses).decode()


def take_annotation(obj: Json) -> str | None:
    meta = obj.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    found: str | None = annotations.pop(ANNOTATION, None)
    if found is not None and not annotations:
        del meta["annotations"]
    return found


def put_annotation(obj: Json, losses: Sequence[Loss]) -> None:
    if losses:
        obj.setdefault("metadata", {}).setdefault("annotations", {})[ANNOTATION] = render_losses(losses)


def _without_meta(obj: Mapping[str, Any]) -> Json:
    return {name: value for name, value in obj.items() if name not in _PARTS}


def _between(have: Any, want: Any, path: tuple[Any, ...], zeros: bool) -> Iterator[Loss]:
    if have == want or (not zeros and _says_the_same(have, want, path)):
        return
    if isinstance(have, dict) and isinstance(want, dict) and not _is_reference(path):
        for name in sorted(have.keys() | want.keys()):
            yield from _between(have.get(name, _ABSENT), want.get(name, _ABSENT), (*path, name), zeros)
    elif isinstance(have, list) and isinstance(want, list) and (key := _identity(have, want)):
        for mine, theirs in zip(have, want, strict=True):
            yield from _between(mine, theirs, (*path, {key: theirs[key]}), zeros)
    else:
        yield {
            "at": list(path),
            **({} if want is _ABSENT else {"is": want}),
            **({} if have is _ABSENT else {"was": have}),
        }


def _says_the_same(have: Any, want: Any, path: tuple[Any, ...]) -> bool:
    if _empty(have) and _empty(want):
        return True
    if isinstance(have, dict) and isinstance(want, dict):
        return _is_reference(path) and {"namespace": have.get("namespace"), **want} == have  # it went without saying
    return isinstance(have, str) and isinstance(want, str) and same_duration(have, want)


def _is_reference(path: tuple[Any, ...]) -> bool:
    """References are kept whole: the UID of one object is nothing to another."""
    last = path[-1] if path else ""
    return isinstance(last, str) and (last in ("ref", "remediationTemplate") or last.endswith("Ref"))


def _empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_empty(item) for item in value.values())
    return value is _ABSENT or not value


def _identity(have: list[Any], want: list[Any]) -> str | None:
    """The field that identifies the items of both lists, if they have the same items in the same order."""
    if not have or not all(isinstance(item, dict) for item in (*have, *want)):
        return None
    for key in _IDENTITIES:
        mine, theirs = [item.get(key) for item in have], [item.get(key) for item in want]
        if mine == theirs and all(isinstance(name, str) for name in mine) and len(set(mine)) == len(mine):
            return key
    return None


def _restore(obj: Json, loss: Loss) -> None:
    *parents, name = loss["at"]
    at: Any = obj
    for step in parents:
        at = _step(at, step)
    if isinstance(name, dict):  # an item of a list is reached, never added
        return
    if not isinstance(at, dict) or at.get(name, _ABSENT) != loss.get("was", _ABSENT):
        return
    if "is" in loss:
        at[name] = loss["is"]
    else:
        at.pop(name, None)


def _step(at: Any, step: Any) -> Any:
    if isinstance(step, str):
        return at.get(step) if isinstance(at, dict) else None
    if not isinstance(at, list):
        return None
    return next((item for item in at if isinstance(item, dict) and step.items() <= item.items()), None)
