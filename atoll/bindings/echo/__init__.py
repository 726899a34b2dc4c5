"""The smallest complete binding: copy this folder to start another."""
