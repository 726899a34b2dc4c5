"""The endpoints of the control API, one class for each resource."""
