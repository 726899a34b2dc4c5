"""Calls to objects that live on another node."""
