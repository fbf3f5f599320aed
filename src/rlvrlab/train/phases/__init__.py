"""The phases a recipe can chain: one file each."""
