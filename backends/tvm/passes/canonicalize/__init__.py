"""Canonicalisation: folding, algebra, CSE, dead code: equal graphs of fewer and cheaper
instructions.

When: `canonicalize` runs several times; the others once, after legalisation, before fusion.
"""
