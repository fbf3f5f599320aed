"""The dashboard: a server on this machine that reads run folders and writes nothing (`rlvr serve report`)."""
