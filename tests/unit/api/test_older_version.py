"""Older versions of kinds are the newest with some types replaced."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.meta import Model, Object, resource, wire
from homeport.api.schema import Default, Required
from homeport.api.version import older
from homeport.machinery.crd.generate import generate


class Engine(Model):
    power_watts: int = 0


class OldEngine(Model):
    horses: int = 0


class Wheel(Model):
    size: str = ""


class ShipSpec(Model):
    """What the ship is to be."""

    engine: Required[Engine] = msgspec.field(default_factory=Engine)
    spares: list[Engine] = []
    reserve: Engine | None = None
    wheel: Wheel = msgspec.field(default_factory=Wheel)
    ship_id: str = msgspec.field(default="", name="shipID")


@resource("sea.example", "v2", "Ship", "ships")
class Ship(Object):
    """A Ship carries goods."""

    spec: ShipSpec = msgspec.field(default_factory=ShipSpec)


def test_a_type_is_replaced_wherever_it_stands_and_the_rest_stays() -> None:
    schema = generate(older(Ship, "v1", {Engine: OldEngine}))
    spec = schema["properties"]["spec"]
    assert schema["description"] == "A Ship carries goods."
    assert list(spec["properties"]) == ["engine", "spares", "reserve", "wheel", "shipID"]
    assert spec["required"] == ["engine"]
    for part in (
        spec["properties"]["engine"],
        spec["properties"]["spares"]["items"],
        spec["properties"]["reserve"],
    ):
        assert list(part["properties"]) == ["horses"]
    assert list(spec["properties"]["wheel"]["properties"]) == ["size"]


def test_a_replacement_with_marks_brings_all_of_them() -> None:
    schema = generate(older(Ship, "v1", {Engine: Annotated[OldEngine, Default({"horses": 4})]}))
    spec = schema["properties"]["spec"]
    assert spec["properties"]["engine"]["default"] == {"horses": 4}
    assert "required" not in spec


def test_the_older_kind_has_its_own_version_and_the_newest_keeps_its_own() -> None:
    same = older(Ship, "v1", {})
    assert (same.__resource__.version, same.__resource__.kind) == ("v1", "Ship")
    assert Ship.__resource__.version == "v2"
    assert generate(same) == generate(Ship)


def test_objects_of_the_older_kind_can_be_read_with_its_defaults() -> None:
    old = older(Ship, "v1", {Engine: OldEngine})
    read = msgspec.json.decode(b'{"metadata": {"name": "one"}, "spec": {"spares": [{"horses": 3}]}}', type=old)
    assert msgspec.to_builtins(read)["spec"]["spares"] == [{"horses": 3}]
    assert wire(old()) == {}
