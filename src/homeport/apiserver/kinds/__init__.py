"""The built-in kinds: facts in builtin.json (schemas, names, columns), behaviour in the modules beside it."""

from __future__ import annotations

from homeport.apiserver.kinds.load import builtin_kinds, definitions, kubernetes_version

__all__ = ["builtin_kinds", "definitions", "kubernetes_version"]
