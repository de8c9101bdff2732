"""What all simulators share: documents, progress, faults, journal, and requests without a web framework."""
