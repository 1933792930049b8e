"""The least of targets: scalar loops in C, without vectors, libraries or threads.

When: `lower` asks its schedules, then the program becomes one file of C.
"""
