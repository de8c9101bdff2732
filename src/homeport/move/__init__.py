"""Moves clusters, with everything that belongs to them, from one plane to another; their machines do not notice.

The steps, in this order (mover.py): check both sides, write a record on the source, pause the source, copy everything,
verify the copies, delete from the source, resume on the target. Running a move again continues it: the record says
what was begun, and each copy carries the mark of what it is a copy of until it is resumed.
"""

from homeport.move.errors import MoveRefused

__all__ = ["MoveRefused"]
