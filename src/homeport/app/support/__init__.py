"""The support bundle: everything that helps to find a defect, without secrets."""
