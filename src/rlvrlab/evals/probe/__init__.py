"""Can training work here? Sample a policy on some problems and say in words whether there is signal to learn from."""
