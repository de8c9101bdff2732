"""A null in what is applied is read as a real API server reads it."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Write
from homeport.runtime.testing import plane

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SERVICE = Resource("", "v1", "Service", "services")


def config_map(data: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "default", **metadata},
        "data": data,
    }


async def test_null_in_a_map_of_texts_is_an_empty_text() -> None:
    manager = Write(field_manager="helm")
    async with plane() as p:
        made = await p.client.apply(
            config_map({"a": None, "b": "1"}, annotations={"n": None}), manager, kind=CONFIG_MAP
        )
        assert made["data"] == {"a": "", "b": "1"}
        assert made.metadata["annotations"] == {"n": ""}
        again = await p.client.apply(config_map({"a": None, "b": "2"}), manager, kind=CONFIG_MAP)
        assert again["data"] == {"a": "", "b": "2"}


async def test_null_in_a_field_leaves_it_unset() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"ports": [{"port": 80, "name": None}], "selector": None},
    }
    async with plane() as p:
        made = await p.client.apply(body, Write(field_manager="helm"), kind=SERVICE)
        assert "selector" not in made["spec"]
        assert "name" not in made["spec"]["ports"][0]
