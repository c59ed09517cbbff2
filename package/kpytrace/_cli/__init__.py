"""The command line. The library imports only the progress bar from this package."""
