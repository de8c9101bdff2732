"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as the Kubernetes API understands them.

Inputs are never changed: what a patch touches is copied on the way down, the rest is shared with the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_MISSING: Final = "missing value"
_BAD_INDEX: Final = "invalid index referenced"
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")


class PatchError(ValueError):
    """A patch that can't be applied. `index` is that of the operation in a JSON patch (-1: no operation's fault)."""

    def __init__(self, message: str, *, index: int = -1, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.index = index
        self.path = path


class PatchTooLarge(PatchError):
    """More operations than a JSON patch may have."""


def same(left: object, right: object) -> bool:
    """JSON equality: like ==, but true is not 1."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def json_patch(doc: object, operations: object) -> Any:
    """Applies all operations or none. Negative indices count from the end, as the API server allows."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    run = _Run(doc)
    for index, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise PatchError(f"operation {index} of the JSON patch must be an object", index=index)
        try:
            run.step(operation)
        except RecursionError:
            raise PatchError("a value of the JSON patch is nested too deeply", index=index) from None
        except PatchError as error:
            error.index = index
            error.path = error.path or str(operation.get("path", ""))
            raise
    return run.root


class _Run:
    """One patch under way. `_owned` holds the containers made here: they alone may be changed in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._owned: dict[int, Any] = {}
        self._copied = 0

    def step(self, operation: Mapping[str, Any]) -> None:
        kind = operation.get("op")
        if kind == "add":
            self._put(_text(operation, "path", "add"), operation.get("value"), "add")
        elif kind == "remove":
            self._remove(_text(operation, "path", "remove"), "remove")
        elif kind == "replace":
            self._replace(_text(operation, "path", "replace"), operation.get("value"))
        elif kind == "test":
            self._test(_text(operation, "path", "test"), operation.get("value"))
        elif kind == "move":
            source = _text(operation, "from", "move")
            value = self._read(source, "move")
            self._remove(source, "move")
            self._put(_text(operation, "path", "move"), value, "move")
        elif kind == "copy":
            self._copy(_text(operation, "from", "copy"), _text(operation, "path", "copy"))
        else:
            raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")

    def _mine(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        copied = dict(container) if isinstance(container, dict) else list(container)
        self._owned[id(copied)] = copied
        return copied

    def _parent(self, path: str, *, change: bool) -> tuple[Any, str]:
        """The container that holds the last step of the path, and that step. (None, '') where there is none."""
        split = path.split("/")
        if len(split) < 2 or not isinstance(self.root, dict | list):
            return None, ""
        if change:
            self.root = self._mine(self.root)
        node = self.root
        for part in split[1:-1]:
            key: Any = _position(node, _decode(part))
            below = None if key is None else node.get(key) if isinstance(node, dict) else node[key]
            if not isinstance(below, dict | list):
                return None, ""
            if change:
                node[key] = below = self._mine(below)
            node = below
        return node, _decode(split[-1])

    def _read(self, path: str, verb: str) -> Any:
        container, key = self._parent(path, change=False)
        if container is None:
            raise PatchError(f"{verb} operation does not apply: doc is missing from path: {path}: {_MISSING}")
        return _get(container, key, f"error in {verb} for path: '{path}'")

    def _put(self, path: str, value: Any, verb: str) -> None:
        container, key = self._parent(path, change=True)
        if container is None:
            where = "path" if verb == "add" else "destination path"
            raise PatchError(f'{verb} operation does not apply: doc is missing {where}: "{path}": {_MISSING}')
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1, f"error in {verb} for path: '{path}'"), value)

    def _remove(self, path: str, verb: str) -> None:
        container, key = self._parent(path, change=True)
        if container is None:
            raise PatchError(f'{verb} operation does not apply: doc is missing path: "{path}": {_MISSING}')
        why = f"error in {verb} for path: '{path}'"
        if isinstance(container, list):
            del container[_index(key, len(container), why)]
        elif key in container:
            del container[key]
        else:
            raise PatchError(f"{why}: Unable to remove nonexistent key: {key}: {_MISSING}")

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array")
            self.root = value
            return
        container, key = self._parent(path, change=True)
        if container is None:
            raise PatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
        if isinstance(container, dict):
            container[key] = value  # the API server takes a replace of an absent key for an add
            return
        try:
            container[_index(key, len(container), "")] = value
        except PatchError:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None

    def _test(self, path: str, value: Any) -> None:
        if path == "":
            found = self.root
        else:
            container, key = self._parent(path, change=False)
            if container is None:
                raise PatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
            found = _get(container, key, f"error in test for path: '{path}'")
        if not same(found, value):
            raise PatchError(f"testing value {path} failed: test failed")

    def _copy(self, source: str, path: str) -> None:
        try:
            encoded = orjson.dumps(self._read(source, "copy"))
        except TypeError:
            raise PatchError(f"the value at {source} is nested too deeply to be copied") from None
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied},"
                f" exceeding the limit {MAX_COPIED_BYTES}"
            )
        self._put(path, orjson.loads(encoded), "copy")


def _text(operation: Mapping[str, Any], field: str, verb: str) -> str:
    value = operation.get(field)
    if not isinstance(value, str):
        raise PatchError(f"{verb} operation failed to decode {field}: {_MISSING}")
    return value


def _decode(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _position(container: Any, key: str) -> str | int | None:
    """The key as `container` takes it: None for an index that isn't there."""
    if isinstance(container, dict):
        return key
    try:
        return _index(key, len(container), "")
    except PatchError:
        return None


def _index(key: str, size: int, why: str) -> int:
    if not _INDEX.fullmatch(key):
        raise PatchError(f"{why}: value was not a proper array index: '{key}'")
    index = int(key)
    if not -size <= index < size:
        raise PatchError(f"{why}: Unable to access invalid index: {index}: {_BAD_INDEX}")
    return index + size if index < 0 else index


def _get(container: Any, key: str, why: str) -> Any:
    """An absent key of an object reads as null, as the API server has it."""
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container), why)]


def merge_patch(doc: object, patch: object) -> Any:
    """null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise PatchError("a merge patch must be an object")
    try:
        return _merge(doc if isinstance(doc, dict) else {}, patch)
    except RecursionError:
        raise PatchError("the patch is nested too deeply") from None


def _merge(doc: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(doc)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = _merge(below, value) if isinstance(below, dict) else without_nulls(value)
        else:
            result[key] = without_nulls(value)
    return result


def without_nulls(value: object) -> Any:
    """The value less its null fields; nulls that are items of a list stay."""
    if isinstance(value, dict):
        return {key: without_nulls(below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [without_nulls(below) for below in value]
    return value


def diff_merge(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `after` of `before`. A null inside `after` can't be said and counts as absent."""
    patch: dict[str, Any] = {key: None for key in before if after.get(key) is None}
    for key, value in after.items():
        if value is None:
            continue
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            below = diff_merge(old, value)
            if below:
                patch[key] = below
        elif key not in before or not same(old, value):
            patch[key] = value
    return patch
