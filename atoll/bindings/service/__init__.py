"""Service bindings: one worker calls another of its tenant, by fetch or by the methods of an entry point."""
