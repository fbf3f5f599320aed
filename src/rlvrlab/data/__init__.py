"""Problems on disk."""
