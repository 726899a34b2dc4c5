"""Authentication, tenants and their quotas, reserved hosts."""
