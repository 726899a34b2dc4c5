"""What the instances of workflows ask of the node."""
