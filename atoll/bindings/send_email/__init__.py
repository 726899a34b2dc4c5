"""send_email: a binding that sends email."""
