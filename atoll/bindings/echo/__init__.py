"""The smallest whole binding: copy this folder to begin another."""
