"""Matrix products: packed panels and register tiles, products of vectors, small products.

When: in `lower`, for a matrix product, and for convolutions that are one.
"""
