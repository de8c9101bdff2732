"""Types of addons.homeport.dev."""
