"""Static assets: files that the node serves itself, and env.NAME to fetch them from a worker."""
