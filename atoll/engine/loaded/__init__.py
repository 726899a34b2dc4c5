"""What is loaded where: versions, their isolates, engine groups, and who has to make room."""
