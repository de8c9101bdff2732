"""The suite itself: it tests providers, and names none of them."""

from __future__ import annotations

from pathlib import Path

from conformance.provider.conftest import VENDORS

HERE = Path(__file__).parent


def test_no_test_knows_a_vendor() -> None:
    words = {name.partition("-")[0] for name in VENDORS} | {"prism", "kubevirt", "vmuuid"}
    assert len(words) > 4
    shared = [*HERE.glob("test_*.py"), HERE / "provider_plane.py", HERE / "vendor.py"]
    for path in shared:
        if path != Path(__file__):
            text = path.read_text().lower()
            assert not [word for word in words if word in text], path.name
