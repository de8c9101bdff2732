"""ClusterCreationPolicy: which parts of a provider clusters may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import ClusterCreationPolicy
from homeport.api.butler.v1alpha1.team import PolicyOption
from homeport.infra.preflight.near import near
from homeport.platforms.butler.normal.outcome import Normal, Reading

DIMENSIONS = ("image", "network", "cluster", "storageContainer")
PIN, ALLOW, DEFAULT, RECOMMENDED = "pin", "allowList", "default", "recommended"


@dataclass(frozen=True, slots=True)
class PolicyModel:
    name: str
    team: str  # '': all teams
    environment: str  # '': all environments
    providers: tuple[str, ...]  # types; (): all
    rules: Mapping[str, PolicyOption]

    def applies_to(self, team: str, environment: str, provider: str) -> bool:
        return (
            self.team in ("", team)
            and self.environment in ("", environment)
            and (not self.providers or provider in self.providers)
        )

    @property
    def rank(self) -> int:
        """The most specific one wins."""
        return bool(self.team) + bool(self.environment)


def normal_cluster_creation_policy(policy: ClusterCreationPolicy) -> Normal[PolicyModel]:
    reading, spec = Reading(), policy.spec
    for name, option in spec.options.items():
        _check_option(reading, name, option)
    scope = spec.scope
    if scope.team_and_environment is not None:
        place = scope.team_and_environment.team_ref.name, scope.team_and_environment.environment_name
    else:
        place = (scope.team.team_ref.name if scope.team else ""), ""
    return reading.result(
        lambda: PolicyModel(policy.metadata.name, *place, tuple(spec.target_providers), dict(spec.options))
    )


def _check_option(reading: Reading, name: str, option: PolicyOption) -> None:
    path = f"spec.options.{name}"
    if name not in DIMENSIONS:
        reading.fault(path, f'unknown option "{name}"{near(name, DIMENSIONS)}')
    if option.mode in (PIN, ALLOW, RECOMMENDED) and not option.values:
        reading.missing(f"{path}.values", f"mode {option.mode} needs at least one value")
    if option.mode == DEFAULT and not option.default:
        reading.missing(f"{path}.default", "mode default needs the value that clusters get")
    if option.mode == ALLOW and option.default and option.default not in option.values:
        reading.fault(f"{path}.default", f'"{option.default}" is not one of the values')


def rule_for(
    policies: Iterable[PolicyModel], dimension: str, team: str, environment: str, provider: str
) -> tuple[PolicyModel, PolicyOption] | None:
    """The rule that counts for a choice of a cluster: of the most specific policy; of equal ones the first by name."""
    found = [each for each in policies if dimension in each.rules and each.applies_to(team, environment, provider)]
    if not found:
        return None
    best = min(found, key=lambda each: (-each.rank, each.name))
    return best, best.rules[dimension]


def refusal(policy: PolicyModel, option: PolicyOption, wanted: Iterable[str]) -> str:
    """Why a choice is refused; '' if it is not. `wanted`: all names and IDs of the one thing that was chosen."""
    names = [each for each in wanted if each]
    if option.mode not in (PIN, ALLOW) or not names or set(names) & set(option.values):
        return ""
    return f'"{names[0]}" is not allowed by ClusterCreationPolicy {policy.name}: choose {" or ".join(option.values)}'
