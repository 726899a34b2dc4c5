"""The stand-in for a binding that Atoll does not have."""
