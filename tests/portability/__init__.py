"""The product on processors that this machine has not."""
