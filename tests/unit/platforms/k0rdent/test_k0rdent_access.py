"""Which copies the rules of an AccessManagement ask for."""

from __future__ import annotations

import msgspec

from homeport.api.k0rdent.v1beta1.access import AccessRule
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.access.rule import SHARED, Granted, Target, add_secrets, add_templates, granted

SPACES = {"kcm-system": {}, "blue": {"team": "blue"}, "red": {"team": "red"}}
SOURCES: dict[str, dict[str, dict[str, str]]] = {each.kind: {} for each in SHARED}
SOURCES |= {"Credential": {"one": {"tier": "a"}, "two": {}}, "ClusterTemplateChain": {"hcp": {}}}


def rules(*given: dict[str, object]) -> Granted:
    return granted(msgspec.convert(list(given), list[AccessRule]), SPACES, SOURCES)


def names(made: Granted) -> list[tuple[str, str, str]]:
    return sorted((each.kind, each.namespace, each.name) for each in made.targets)


def test_a_rule_without_namespaces_means_all_of_them_except_that_of_the_originals() -> None:
    made = rules({"resources": [{"kind": "Credential", "names": ["one"]}]})
    assert names(made) == [("Credential", "blue", "one"), ("Credential", "red", "one")]
    assert not made.errors


def test_namespaces_and_objects_are_chosen_by_list_labels_or_text() -> None:
    for target in (
        {"list": ["blue", "unborn"]},
        {"selector": {"matchLabels": {"team": "blue"}}},
        {"stringSelector": "team=blue"},
    ):
        for chosen in ({"stringSelector": "tier=a"}, {"selector": {"matchLabels": {"tier": "a"}}}):
            made = rules({"targetNamespaces": target, "resources": [{"kind": "Credential", **chosen}]})
            assert names(made) == [("Credential", "blue", "one")]


def test_the_lists_of_older_rules_still_count() -> None:
    made = rules({"targetNamespaces": {"list": ["red"]}, "credentials": ["two"], "clusterTemplateChains": ["hcp"]})
    assert names(made) == [("ClusterTemplateChain", "red", "hcp"), ("Credential", "red", "two")]


def test_what_is_wrong_is_named_with_its_field_or_the_near_match() -> None:
    made = rules(
        {"credentials": ["onee"]},
        {"resources": [{"kind": "Pod"}, {"kind": "Secret"}, {"kind": "Credential", "apiGroup": "apps"}]},
        {"targetNamespaces": {"stringSelector": "=="}},
    )
    assert made.errors["Credential"][0].startswith(
        "Credential \"onee\" does not exist in kcm-system; did you mean 'one'"
    )
    assert "spec.accessRules[1].resources[2].apiGroup" in made.errors["Credential"][1]
    assert "can't be shared" in made.errors["Pod"][0]
    assert "would share too much" in made.errors["Secret"][0]
    assert made.errors[""][0].startswith("spec.accessRules[2].targetNamespaces: ")
    assert not made.targets


def test_with_a_chain_come_its_templates_and_with_a_credential_its_secret() -> None:
    made = rules({"targetNamespaces": {"list": ["red"]}, "credentials": ["two"], "clusterTemplateChains": ["hcp"]})
    add_templates(made, "ClusterTemplateChain", "ClusterTemplate", {"hcp": ["a", "gone"]}, {"a": {}})
    add_secrets(made, "Credential", {"two": Key("capx-system", "nutanix-creds")})
    assert made.targets[Target("ClusterTemplate", "red", "a")] == Key("kcm-system", "a")
    assert made.targets[Target("Secret", "red", "nutanix-creds")] == Key("capx-system", "nutanix-creds")
    assert made.errors["ClusterTemplate"] == [
        'ClusterTemplate "gone" of ClusterTemplateChain hcp does not exist in kcm-system'
    ]
