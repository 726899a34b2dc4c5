"""The SQL of Analytics Engine, translated to SQLite's."""
