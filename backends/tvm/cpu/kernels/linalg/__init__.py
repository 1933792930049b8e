"""Factorisations, eigenvalues, singular values: batches of small matrices, blocks of large."""
