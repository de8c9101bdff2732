"""Prism Central as this provider uses it: one set of records and verbs, spoken as API v4 or, where that is absent, v3."""
