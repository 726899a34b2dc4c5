"""The parts of a control API endpoint: routes, callers, bodies, answers, pages, refusals, the audit log.

This package is below `bindings/`, so a binding can have its own endpoints (`bindings/<kind>/admin.py`). `control/`
collects the endpoints of all packages and serves them.
"""
