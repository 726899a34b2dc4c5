"""`atoll types` and the declarations it writes."""
