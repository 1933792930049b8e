"""The least of targets: scalar loops in C, without vectors, libraries or threads."""
