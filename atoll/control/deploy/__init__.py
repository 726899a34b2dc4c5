"""Deploys: from a checked body to traffic."""
