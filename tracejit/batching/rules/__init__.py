"""How every op is batched: a module for each family of ops, imported when it is first needed."""
