"""Provider IDs that name the vendor's endpoint beside the machine."""

from __future__ import annotations

import pytest

from homeport.capi.remote.workload import provider_id_forms

PC = "0b5ad2e5-9b9a-4c7b-8f9f-2f5b6f6f3c11"
VM = "9f3c1f9a-1111-4222-8333-444455556666"


@pytest.mark.parametrize(
    ("provider_id", "forms"),
    [
        (f"nutanix://{VM}", (f"nutanix://{VM}",)),
        (f"nutanix://{PC}/{VM}", (f"nutanix://{PC}/{VM}", f"nutanix://{VM}")),
        ("aws:///eu-1a/i-0123", ("aws:///eu-1a/i-0123",)),
        ("gce://project/zone/name", ("gce://project/zone/name",)),
        ("", ()),
    ],
)
def test_a_node_is_found_by_each_form_of_its_provider_id(provider_id: str, forms: tuple[str, ...]) -> None:
    assert provider_id_forms(provider_id) == forms
