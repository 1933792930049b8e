"""Test suites of others, run against the product from a path on the command line."""
