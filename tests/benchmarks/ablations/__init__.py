"""What each pass and each special way to write a kernel is worth: programs with and without it."""
