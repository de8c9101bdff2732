"""Homeport's server answers about built-in kinds what a real kube-apiserver answered when it was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from unit.apiserver.kinds.kind_server import Server
from unit.apiserver.kinds.kind_stories import STORIES
from unit.apiserver.kinds.kind_story import ANSWERS, Step, settled

Json = dict[str, Any]


def differences(real: Any, ours: Any, path: str = "") -> list[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(real.keys() | ours.keys()):
            at = f"{path}.{key}" if path else key
            if key not in real:
                found.append(f"{at}: only ours {ours[key]!r}")
            elif key not in ours:
                found.append(f"{at}: only the real one has {real[key]!r}")
            else:
                found += differences(real[key], ours[key], at)
        return found
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [d for i, pair in enumerate(zip(real, ours, strict=True)) for d in differences(*pair, f"{path}[{i}]")]
    return [] if real == ours else [f"{path}:\n    real {real!r}\n    ours {ours!r}"]


def unexpected(step: Step, found: list[str]) -> list[str]:
    """What differs although nothing says that it should."""
    if not step.differs:
        return found
    assert found, f"{step.method} {step.path} is answered as by the real server now: drop `differs`"
    allowed = step.differs.partition("(")[2].rstrip(")").split(", ")
    starts = tuple(prefix for part in allowed for prefix in (part, f"object.{part}"))
    return [difference for difference in found if not difference.startswith(starts)]


@pytest.mark.parametrize("name", sorted(STORIES))
async def test_a_story_gets_the_answers_of_the_real_server(server: Server, name: str) -> None:
    answers = json.loads((ANSWERS / f"{name}.json").read_text())
    wrong: list[str] = []
    steps = list(STORIES[name]())
    assert len(steps) == len(answers), "the story changed: run tools/record_answers.py"
    for i, (step, real) in enumerate(zip(steps, answers, strict=True)):
        code, ours = await server.ask(step.method, step.path, step.body, step.content_type)
        found = unexpected(step, differences(real, settled(code, ours)))
        wrong += [f"step {i}: {step.method} {step.path} {json.dumps(step.body)[:200]}", *found] if found else []
    assert not wrong, "\n".join(wrong)
