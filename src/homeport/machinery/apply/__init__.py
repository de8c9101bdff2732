"""Server-side apply: who owns which field, and how an applied configuration merges into an object.

fieldset    sets of fields, in the form that managedFields stores
shape       what a schema says about merging: granular or atomic, list keys
compare     the fields in which two objects differ, and the fields of one
merge       an applied configuration into an object; removal of fields
managed     managedFields of an object through create, update and apply
"""

from __future__ import annotations
