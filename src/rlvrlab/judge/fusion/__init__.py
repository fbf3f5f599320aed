"""SandboxFusion, both ways: a client of its servers, and a server for its clients (the PyPI package, verl)."""
