"""The HTTP edge of the control API: the boundary around all endpoints, the OpenAPI document, the front page."""
