"""kamaji.clastix.io: the kinds of Steward in the spelling of Kamaji."""
