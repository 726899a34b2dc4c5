"""A binding that uses every feature of a manifest. Tests build it into a copy of Atoll. Copy it to start your own."""
