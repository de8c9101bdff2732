"""Objects of add-ons in workload clusters: applied, watched, repaired and removed."""
