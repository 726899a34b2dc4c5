"""`atoll dev`: a node in this process that serves a project and reloads it when its files change."""

CONTROL_HOST = "control.localhost"  # where the control API of a session answers
