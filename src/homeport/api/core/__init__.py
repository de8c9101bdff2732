"""Types of the core group that other kinds embed."""
