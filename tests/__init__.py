"""The tests of tracejit; helpers are imported from here by their full names, `tests.…`."""
