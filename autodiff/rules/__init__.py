"""Every op's derivative: a module for each family of ops, imported when it is first needed."""
