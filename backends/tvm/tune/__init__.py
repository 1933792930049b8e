"""Every choice of a kernel's writer, and who decides it: the cost model, or measurements."""
