"""Static assets as pure data and functions: which file, redirect or worker answers a path. No I/O."""
