"""The link between nodes: one sealed connection for each pair, with frames of calls."""
