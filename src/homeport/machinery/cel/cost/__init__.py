"""What an expression costs: estimated before it is stored, counted while it runs."""
