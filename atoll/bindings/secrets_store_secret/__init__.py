"""Secrets that several workers share, in stores."""
