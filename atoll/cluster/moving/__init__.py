"""`atoll migrate`: moves what nodes share from a data folder into PostgreSQL, and back."""
