"""The verbs behind the registry: what a read, a write, a deletion and a watch do."""
