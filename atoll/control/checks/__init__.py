"""Checks the body of a deploy and turns it into the parts of a version. Pure."""
