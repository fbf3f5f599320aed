"""Look at what was recorded: gather reads a folder, page makes one HTML file of it."""
