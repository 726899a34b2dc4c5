"""HTTP in: from the socket to a call of a worker, and back."""
