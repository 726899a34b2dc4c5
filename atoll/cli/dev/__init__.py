"""`atoll dev`: a node in this process that serves one project and follows its files."""
