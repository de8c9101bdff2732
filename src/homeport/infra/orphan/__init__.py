"""Machines at a vendor that have no object: found, judged and removed with proof."""
