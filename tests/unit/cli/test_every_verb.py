"""Every command has a help text, a test of its output and a main error: this module fails for a new command without."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from homeport.cli.main import group
from unit.cli.test_output_format import leaves

ROOT = Path(__file__).parents[3]
COMMANDS = dict(leaves(group))

# Where the output is compared: a test function, or a page whose commands tests/docs runs.
OUTPUT = {
    "up": "tests/e2e/test_terminal_view.py",
    "down": "tests/e2e/test_homeport_command.py",
    "status": "tests/e2e/test_homeport_command.py::test_status_tells_where_it_runs_and_what_it_holds",
    "dashboard": "tests/e2e/test_dashboard.py",
    "env": "docs/howto/simulate-prism.md",
    "backup": "tests/e2e/test_homeport_command.py::test_a_backup_taken_while_running_restores_elsewhere_with_its_secrets",
    "restore": "tests/e2e/test_homeport_command.py::test_a_backup_taken_while_running_restores_elsewhere_with_its_secrets",
    "support-bundle": "tests/e2e/test_support_bundle.py",
    "create cluster": "tests/scenario/nutanix/test_create_command.py",
    "plan": "tests/unit/cli/test_plan_command.py",
    "preflight": "tests/scenario/nutanix/test_preflight_command.py",
    "describe": "tests/unit/cli/test_tree_command.py",
    "tree": "tests/unit/cli/test_tree_command.py",
    "discover": "tests/scenario/nutanix/test_nutanix_discovery.py",
    "image list": "docs/howto/create-a-cluster.md",
    "image upload": "tests/e2e/test_operator_command.py",
    "kubeconfig": "tests/unit/cli/test_kubeconfig_command.py",
    "doctor": "tests/e2e/test_doctor.py::test_findings_are_data_and_sentences_with_a_command",
    "logs": "tests/e2e/test_log.py",
    "console": "tests/unit/cli/test_hostile_user.py",
    "ssh": "docs/howto/troubleshoot.md",
    "top clusters": "tests/unit/cli/test_output_format.py",
    "top machines": "tests/unit/cli/test_output_format.py",
    "upgrade cluster": "tests/unit/cli/test_upkeep_command.py::test_an_upgrade_is_applied_only_when_told",
    "heal": "tests/unit/cli/test_upkeep_command.py",
    "rollout history": "tests/unit/cli/test_rollout_command.py",
    "rollout pause": "tests/unit/cli/test_upkeep_command.py::test_control_planes_are_restarted_paused_and_resumed",
    "rollout restart": "tests/unit/cli/test_upkeep_command.py::test_control_planes_are_restarted_paused_and_resumed",
    "rollout resume": "tests/unit/cli/test_upkeep_command.py::test_control_planes_are_restarted_paused_and_resumed",
    "rollout status": "tests/unit/cli/test_upkeep_command.py::test_control_planes_are_restarted_paused_and_resumed",
    "rollout undo": "tests/unit/cli/test_rollout_command.py",
    "import cluster": "tests/e2e/test_import_command.py",
    "import undo": "docs/howto/import.md",
    "move": "tests/e2e/test_move_command.py",
    "orphans adopt": "tests/unit/cli/test_orphans_command.py",
    "orphans list": "docs/howto/orphans.md",
    "orphans machines": "tests/unit/cli/test_output_format.py",
    "orphans remove": "tests/unit/cli/test_orphans_command.py",
    "install": "tests/e2e/test_install_command.py",
    "uninstall": "tests/e2e/test_install_on_kubernetes.py::test_uninstall_keeps_what_users_have",
    "bootstrap": "tests/e2e/test_bootstrap_command.py",
    "init": "docs/howto/k0rdent.md",
    "ccm": "tests/unit/cli/test_ccm_command.py",
    "chart history": "tests/e2e/test_operator_command.py::test_chart_show_and_history_print_facts_and_names",
    "chart install": "tests/unit/cli/test_chart_command.py::test_a_release_from_its_install_to_its_end",
    "chart list": "tests/unit/cli/test_output_format.py",
    "chart pull": "tests/unit/cli/test_chart_command.py::test_pull_writes_the_archive",
    "chart render": "tests/unit/cli/test_chart_command.py::test_render_prints_the_objects_with_the_values_given",
    "chart rollback": "tests/unit/cli/test_chart_command.py::test_a_release_from_its_install_to_its_end",
    "chart show": "tests/unit/cli/test_chart_command.py::test_show_tells_what_a_chart_is",
    "chart uninstall": "tests/unit/cli/test_chart_command.py::test_a_release_from_its_install_to_its_end",
    "addons list": "tests/unit/cli/test_addons_command.py",
    "addons pull": "tests/unit/cli/test_addons_command.py",
    "addons show": "tests/unit/cli/test_addons_command.py::test_an_add_on_is_shown_with_its_chart_and_parameters",
    "sim harvester": "tests/e2e/test_up_harvester.py",
    "sim prism": "docs/howto/simulate-prism.md",
    "completion": "tests/unit/app/test_machine_login.py::test_completion_prints_a_script_for_each_shell",
    "version": "tests/unit/cli/test_version_command.py",
}

NO_PLANE = (1, "kubeconfig does not exist: start a plane with 'homeport up', or use --kubeconfig FILE")
TARGET = (2, "'workers': expected machinedeployment/NAME")
# Arguments, exit code, and what the user has to read. No plane runs, and HOME is empty.
ERRORS: dict[str, tuple[tuple[str, ...], tuple[int, str]]] = {
    "up": (("--listen", "127.0.0.1:none"), (2, "--listen")),
    "down": (("--data",), (2, "requires an argument")),
    "status": ((), (3, "next: homeport up")),
    "dashboard": ((), NO_PLANE),
    "env": ((), (1, "start it with 'homeport up'")),
    "backup": (("backup.tar",), (1, "contains no database, so there is nothing to back up: check --data")),
    "restore": (("backup.tar",), (1, "no such file: check the path")),
    "support-bundle": ((), NO_PLANE),
    "create cluster": (("quay",), (2, "--api is required: cluster-api, tenant or deployment")),
    "plan": (("-f", "no.yaml"), (1, "-f no.yaml: can't be read")),
    "preflight": (("-f", "no.yaml"), (1, "-f no.yaml: can't be read")),
    "describe": (("harbour",), NO_PLANE),
    "tree": ((), NO_PLANE),
    "discover": (("pictures",), (2, "'pictures' is not one of 'clusters', 'images'")),
    "image list": ((), NO_PLANE),
    "image upload": (("ubuntu",), (2, "Missing option '--provider-config'")),
    "kubeconfig": (("harbour",), NO_PLANE),
    "doctor": ((), NO_PLANE),
    "logs": (("cluster/harbour",), NO_PLANE),
    "console": (("one",), NO_PLANE),
    "ssh": (("one",), NO_PLANE),
    "top clusters": ((), NO_PLANE),
    "top machines": ((), NO_PLANE),
    "upgrade cluster": (("harbour",), (2, "Missing option '--to'")),
    "heal": (("one",), NO_PLANE),
    "rollout history": (("workers",), TARGET),
    "rollout pause": (("workers",), TARGET),
    "rollout restart": (("workers",), TARGET),
    "rollout resume": (("workers",), TARGET),
    "rollout status": (("workers",), TARGET),
    "rollout undo": (("workers",), TARGET),
    "import cluster": (("quay",), (2, "Missing option '--cluster-kubeconfig'")),
    "import undo": (("quay",), (1, "add --yes")),
    "move": (("--to", "no/where"), (2, "Path 'no/where' does not exist")),
    "orphans adopt": (("harbour",), (2, "name the VMs to adopt, or use --all")),
    "orphans list": (("harbour",), NO_PLANE),
    "orphans machines": ((), NO_PLANE),
    "orphans remove": (("harbour",), (2, "Missing argument 'VM...'")),
    "install": ((), (2, "--kubeconfig FILE is required (or --dry-run)")),
    "uninstall": ((), (2, "Missing option '--kubeconfig'")),
    "bootstrap": ((), (2, "Missing option '-f' / '--filename'")),
    "init": ((), NO_PLANE),
    "ccm": ((), (2, "Missing option '--config'")),
    "chart history": (("web",), NO_PLANE),
    "chart install": (("web", "./none"), NO_PLANE),
    "chart list": ((), NO_PLANE),
    "chart pull": (("./none",), (1, "chart none does not exist")),
    "chart render": (("web", "./none"), (1, "chart none does not exist")),
    "chart rollback": (("web",), NO_PLANE),
    "chart show": (("./none",), (1, "chart none does not exist")),
    "chart uninstall": (("web",), NO_PLANE),
    "addons list": (("-o", "xml"), (2, "'xml' is not one of")),
    "addons pull": (("ciliun",), (2, "did you mean cilium?")),
    "addons show": (("ciliun",), (2, "did you mean cilium?")),
    "sim harvester": (("--speed", "quick"), (1, "'quick' is not a valid speed: expected instant, real")),
    "sim prism": (("--speed", "quick"), (1, "'quick' is not a valid speed: expected instant, real")),
    "completion": (("tcsh",), (2, "'tcsh' is not one of 'bash', 'zsh', 'fish'")),
    "version": (("1",), (2, "unexpected extra argument (1)")),
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "HOMEPORT_DATA", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_every_command_has_an_entry() -> None:
    assert set(COMMANDS) == set(OUTPUT) == set(ERRORS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_what_the_command_and_each_option_does(name: str) -> None:
    result = CliRunner().invoke(group, [*name.split(), "--help"], prog_name="homeport")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: homeport {name} ")
    first = (COMMANDS[name].help or "").split("\n\n")[0]
    assert first.endswith("."), first
    assert first[0].isupper(), first
    silent = [each.opts for each in COMMANDS[name].params if isinstance(each, click.Option) and not each.help]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_its_output_is_compared_somewhere(name: str) -> None:
    file, _, function = OUTPUT[name].partition("::")
    text = (ROOT / file).read_text()
    if file.endswith(".md"):
        assert any(f"homeport {name}" in line for line in text.splitlines() if line.startswith("$ ")), file
        return
    tree = ast.parse(text)
    tests = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assert not function or any(node.name == function for node in tests), function
    told = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words = {word for each in told for word in each.split()}
    assert name.split()[-1] in words, f"{file} does not run {name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_its_main_error_says_what_to_do_and_is_no_traceback(name: str) -> None:
    words, (code, text) = ERRORS[name]
    result = CliRunner().invoke(group, [*name.split(), *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, text in " ".join(result.output.split())) == (code, True), result.output
