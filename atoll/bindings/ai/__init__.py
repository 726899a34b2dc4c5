"""env.AI: models on a server that the operator names."""
