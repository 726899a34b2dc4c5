"""Client certificates that workers present to servers."""
