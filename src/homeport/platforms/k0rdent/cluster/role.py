"""Values that workers of every distribution have. Pure."""

from __future__ import annotations

from typing import Any

from homeport.platforms.k0rdent.cluster.part import TEXT, group, text

Json = dict[str, Any]


def worker_fields() -> dict[str, Json]:
    return {
        "labels": {"type": "object", "additionalProperties": TEXT, "description": "Labels of the Nodes."},
        "taints": {
            "type": "array",
            "description": "Taints of the Nodes.",
            "items": group(
                key=text("Key of the taint.", minLength=1),
                value=text("Value of the taint."),
                effect=text("Effect of the taint.", enum=["NoSchedule", "PreferNoSchedule", "NoExecute"]),
            ),
        },
    }
