"""A project on disk: read from its config file, built into modules, packed into a bundle. Independent of any node."""
