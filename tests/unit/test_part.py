from __future__ import annotations

from pathlib import Path

import pytest

from part import ALONE, HERE, PROGRAMS, part_of


@pytest.mark.parametrize(
    ("module", "part"),
    [
        ("unit/test_part.py", ALONE),
        ("scenario/capi/test_remediation.py", ALONE),
        ("docs/commands/test_commands.py", PROGRAMS),  # imports a module that looks for programs
        ("conformance/client/test_crud.py", PROGRAMS),  # by its conftest.py
        ("seeds/test_nutanix_guide.py", PROGRAMS),  # by a conftest.py that imports another
        ("unit/hosted/test_pod.py", PROGRAMS),  # looks for them itself
    ],
)
def test_a_module_waits_for_programs_if_it_reaches_code_that_looks_for_them(module: str, part: str) -> None:
    assert part_of(HERE / module) == part


def test_an_import_in_the_middle_of_a_module_counts(tmp_path: Path) -> None:
    module = tmp_path / "test_late.py"
    module.write_text("def test_late() -> None:\n    from realkube import find_binaries\n")
    assert part_of(module) == PROGRAMS


@pytest.mark.parametrize("line", ["from capikit import (\n    clusterctl,\n)\n", "import capikit.clusterctl\n"])
def test_every_way_to_write_an_import_counts(line: str, tmp_path: Path) -> None:
    module = tmp_path / "test_late.py"
    module.write_text(line)
    assert part_of(module) == PROGRAMS
