"""The compiler's passes: one by one, and the list of them."""
