"""Every story by name."""

from __future__ import annotations

import story_access
import story_core
import story_network
import story_placement
import story_pod
import story_scale
import story_workload
from kind_story import Story

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
