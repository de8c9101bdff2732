"""The built-in kinds: facts in builtin.json and wire.json, behaviour in the modules beside them.

`builtin_kinds` makes them, `install` connects them with one server, `seed_objects` is what a fresh server has.
"""

from __future__ import annotations

from homeport.apiserver.kinds.load import builtin_kinds, definitions, kubernetes_version
from homeport.apiserver.kinds.seed import seed_objects

__all__ = ["builtin_kinds", "definitions", "kubernetes_version", "seed_objects"]
