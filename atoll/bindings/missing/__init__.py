"""A binding that stands for one Atoll does not have."""
