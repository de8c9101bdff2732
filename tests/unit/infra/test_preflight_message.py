"""How the failures of several checks become one message."""

from __future__ import annotations

from homeport.infra.preflight.check import fold


def test_what_is_said_of_several_templates_is_said_once() -> None:
    missing = 'spec.template.spec.image: image "ubuntu" not found'
    other = 'NutanixMachineTemplate workers: spec.template.spec.subnet[0]: subnet "lan" not found'
    found = fold([f"NutanixMachineTemplate {name}: {missing}" for name in ("plane", "workers", "plane")] + [other])
    assert found == f"NutanixMachineTemplate plane and NutanixMachineTemplate workers: {missing}; {other}"


def test_sentences_without_a_subject_stay() -> None:
    assert fold(["no Prism Element answers", "no Prism Element answers", "wait"]) == "no Prism Element answers; wait"
