"""Matrix products: packed panels and register tiles, products of vectors, small products."""
