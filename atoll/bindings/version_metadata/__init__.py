"""The version metadata binding: the version of the running worker."""
