"""Schemas at work: what an object of a kind may look like, and what becomes of one that looks different."""

from __future__ import annotations

from homeport.machinery.schema.checker import SchemaChecker, compile_checker
from homeport.machinery.schema.node import MISSING, Schema
from homeport.machinery.schema.violation import Violation

__all__ = ["MISSING", "Schema", "SchemaChecker", "Violation", "compile_checker"]
