"""Prism Central as we use it: one set of records and verbs, spoken as API v4 or, where that is absent, as v3."""
