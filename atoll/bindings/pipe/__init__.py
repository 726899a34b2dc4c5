"""Pipes: streams from one worker to another."""
