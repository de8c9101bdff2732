"""The checks of the doctor. Each is a function of the facts; none does I/O."""
