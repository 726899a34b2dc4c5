"""Engine processes: how they are started, confined, watched, replaced and ended."""
