"""Every module here holds attacks on everybody's event loop; stage.py finds them."""
