"""RPC sessions: stubs, callbacks and pipelined calls between two workers."""
