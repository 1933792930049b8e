"""Devices that run one program together: threads of this process, or ranks of MPI."""
