"""One `atoll serve` takes the place of another without a refused connection: docs/decisions/0080."""
