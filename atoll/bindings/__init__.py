"""Bindings: what workers can do beyond computing, one folder for each. atoll/manifests finds the folders."""
