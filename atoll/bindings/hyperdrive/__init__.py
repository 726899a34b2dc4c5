"""Hyperdrive: connections to databases that the operator has named."""
