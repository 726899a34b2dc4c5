"""KV: values by key, in namespaces that belong to a tenant."""
