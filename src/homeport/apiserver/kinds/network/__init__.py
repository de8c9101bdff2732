"""Services and what routes traffic to them."""
