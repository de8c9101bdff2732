"""Every story by name."""

from __future__ import annotations

from unit.apiserver.kinds import (
    story_access,
    story_core,
    story_network,
    story_placement,
    story_pod,
    story_scale,
    story_workload,
)
from unit.apiserver.kinds.kind_story import Story

STORIES: dict[str, Story] = {
    name: story
    for module in (
        story_access,
        story_core,
        story_network,
        story_placement,
        story_pod,
        story_scale,
        story_workload,
    )
    for name, story in module.STORIES.items()
}
