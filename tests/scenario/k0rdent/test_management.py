"""The plane as k0rdent shows it: Management, templates, credentials."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.k0rdent.v1beta1 import ClusterTemplate, Credential, Management, ProviderInterface, Region, Release
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.platforms.k0rdent.name import KNOWN_PROVIDERS
from homeport.platforms.k0rdent.stored import ADVICE
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import CONFIG_MAP, SECRET, SPACE, credential, deployments, k0rdent, secret


@virtual
async def test_management_is_ready_from_the_start_with_nutanix_enabled() -> None:
    async with deployments() as stage:
        found = await stage.management()
        assert found.status.release == "kcm-1-2-0"
        assert "infrastructure-nutanix" in found.status.available_providers
        assert {name for name, each in found.status.components.items() if each.success} == {
            "kcm",
            "capi",
            "harvester",
            "k0smotron",
            "nutanix",
        }
        release: Release = await stage.client.get(Release, Key("", "kcm-1-2-0"))
        assert release.status.ready
        interfaces = (await stage.client.list(ProviderInterface, Query(labels="cluster.x-k8s.io/provider"))).items
        offered = sorted(each.metadata.labels["cluster.x-k8s.io/provider"] for each in interfaces)
        assert offered == ["infrastructure-kubevirt", "infrastructure-nutanix"]


@virtual
async def test_the_templates_of_the_guide_are_valid_and_publish_their_schema() -> None:
    async with deployments() as stage:
        await stage.management()
        for name in ("nutanix-k0s-hcp", "nutanix-k0s-standalone"):
            found = await stage.plane.until(
                ClusterTemplate, Key(SPACE, name), lambda each: each.status.valid, 30.0, what="being valid"
            )
            assert found.status.config["k0s"]["version"].startswith("v1.")
            schema = await stage.client.get(CONFIG_MAP, Key(SPACE, found.status.schema_config_map_name))
            assert "machineDefaults" in schema["data"]["schema"]
            given: ClusterClass = await stage.client.get(ClusterClass, Key(SPACE, name))
            mode = name.removeprefix("nutanix-k0s-")
            assert given.spec.control_plane.template_ref is not None
            assert given.spec.control_plane.template_ref.name == f"nutanix-capx-{mode}-cp"


@virtual
async def test_an_unknown_provider_makes_management_unready_and_says_which_there_are() -> None:
    async with deployments() as stage:
        made = await stage.management()
        providers = [{"name": each.name} for each in made.spec.providers]
        body = {"spec": {"providers": [*providers, {"name": "acme"}]}}
        await stage.client.patch(Management, Key("", "kcm"), MergePatch(body))
        found = await stage.plane.until(
            Management,
            Key("", "kcm"),
            lambda obj: (condition.find(obj.status.conditions, "Ready") or {}).get("status") == "False",
            30.0,
            what="being unready",
        )
        said = condition.find(found.status.conditions, "Ready") or {}
        assert said["reason"] == "NotAllComponentsHealthy"
        assert "provider acme is unknown; providers of this plane are harvester, k0smotron, nutanix" in said["message"]
        await stage.client.patch(Management, Key("", "kcm"), MergePatch({"spec": {"providers": providers}}))
        await stage.management()


@virtual
async def test_a_credential_is_ready_while_its_secret_exists_and_never_owns_it() -> None:
    async with deployments() as stage:
        await stage.have(credential())
        key = Key(SPACE, "nutanix-cluster-identity-cred")

        async def until(ready: bool) -> Credential:
            found: Credential = await stage.plane.until(
                Credential,
                key,
                lambda each: bool(each.status.conditions) and each.status.ready is ready,
                60.0,
                what=f"ready {ready}",
            )
            return found

        missing = await until(False)
        said = condition.find(missing.status.conditions, "CredentialReady") or {}
        assert "Secret kcm-system/nutanix-cluster-creds of spec.identityRef does not exist" in said["message"]
        await stage.have(secret())
        await until(True)
        held = await stage.client.get(SECRET, Key(SPACE, "nutanix-cluster-creds"))
        assert not held.metadata.get("ownerReferences")
        assert not held.metadata.get("finalizers")
        await stage.client.delete(SECRET, Key(SPACE, "nutanix-cluster-creds"))
        await until(False)


@virtual
async def test_every_kind_that_nothing_acts_on_says_so() -> None:
    async with deployments() as stage:
        account = {"name": "account", "namespace": SPACE, "key": "value"}
        specs: dict[str, dict[str, object]] = {
            "DataSource": {
                "type": "postgresql",
                "endpoints": ["db.example.com:5432"],
                "auth": {"username": account, "password": account},
            },
            "ClusterDataSource": {"schema": "demo", "dataSource": "one"},
        }
        kinds = {each.__resource__.kind: each for each in ADVICE}
        for name, spec in specs.items():
            kind = kinds[name]
            where = SPACE if kind.__resource__.namespaced else ""
            await stage.have(k0rdent(name, "one", spec, namespace=where))
            found = await stage.plane.until(
                kind, Key(where, "one"), lambda each: bool(each.status.conditions), 30.0, what="a status"
            )
            assert (condition.find(found.status.conditions, "Ready") or {})["reason"] == "NotActedOn"


@virtual
async def test_regions_are_stored_and_say_that_nothing_acts_on_them() -> None:
    async with deployments() as stage:
        await stage.have(k0rdent("Region", "north", {"kubeConfig": {"name": "north"}}, namespace=""))
        found = await stage.plane.until(
            Region, Key("", "north"), lambda each: bool(each.status.conditions), 30.0, what="a status"
        )
        assert (condition.find(found.status.conditions, "Ready") or {})["reason"] == "NotActedOn"


@virtual
async def test_a_plane_of_an_older_version_gets_new_providers_once_and_keeps_what_its_user_removed() -> None:
    async with deployments() as stage:
        await stage.management()
        key = Key("", "kcm")
        older = {"metadata": {"annotations": {KNOWN_PROVIDERS: None}}, "spec": {"providers": [{"name": "nutanix"}]}}
        await stage.client.patch(Management, key, MergePatch(older))
        found = await stage.plane.until(Management, key, lambda obj: len(obj.spec.providers) > 1, 60, what="harvester")
        # k0smotron was there before the annotation: the user has removed it.
        assert [each.name for each in found.spec.providers] == ["nutanix", "harvester"]
        await stage.client.patch(Management, key, MergePatch({"spec": {"providers": [{"name": "nutanix"}]}}))
        await stage.restart()
        await stage.plane.settle(60)
        kept: Management = await stage.client.get(Management, key)
        assert [each.name for each in kept.spec.providers] == ["nutanix"]
        assert condition.is_true(kept.status.conditions, "Ready")


@virtual
async def test_a_template_of_a_class_that_is_deleted_comes_back_at_once() -> None:
    async with deployments() as stage:
        await stage.management()
        key = Key(SPACE, "nutanix-capx-hcp-worker-mt")
        old = await stage.plane.until(NutanixMachineTemplate, key, lambda obj: True, 60, what="the template")
        await stage.client.delete(NutanixMachineTemplate, key)
        await stage.plane.until(
            NutanixMachineTemplate, key, lambda obj: obj.metadata.uid != old.metadata.uid, 30, what="another one"
        )
        await stage.management()
