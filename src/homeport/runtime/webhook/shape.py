"""Whether an object has the shape of its kind. Defaults are asked for before an API server looks at that itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.machinery.schema.checker import SchemaChecker, compile_checker


class Shapes:
    """By the schemas of these CustomResourceDefinitions, which are compiled when they are first needed."""

    def __init__(self, definitions: Iterable[Mapping[str, Any]] = ()) -> None:
        self._checkers: dict[tuple[str, str, str], SchemaChecker] = {
            (spec["group"], version["name"], spec["names"]["plural"]): compile_checker(
                version["schema"]["openAPIV3Schema"]
            )
            for spec in (each["spec"] for each in definitions)
            for version in spec["versions"]
        }

    def refuses(self, resource: Resource, obj: dict[str, Any]) -> bool:
        """An API server with the same definition will, and say why. False: it will not, or the kind is not known."""
        checker = self._checkers.get((resource.group, resource.version, resource.plural))
        return checker is not None and bool(checker.validate(obj, flawed=True))
