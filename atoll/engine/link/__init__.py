"""One engine as Python talks to it: its socket, the memory it shares, and its session."""
