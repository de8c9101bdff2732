"""Teams: who may make clusters, how many, of which parts; and access to them."""
