"""One process per data directory."""

from __future__ import annotations

import os

import pytest

from homeport.app.instance import AlreadyRunning, Claim, claimed


def test_a_claim_excludes_a_second_one_and_names_its_holder(tmp_path):
    assert not claimed(tmp_path)
    claim = Claim(tmp_path)
    assert claimed(tmp_path)
    with pytest.raises(AlreadyRunning, match=f"by process {os.getpid()}"):
        Claim(tmp_path)
    claim.release()
    assert not claimed(tmp_path)
    Claim(tmp_path).release()
