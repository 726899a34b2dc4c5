"""The files of static assets on disk: receiving, keeping, collecting and reading them."""
