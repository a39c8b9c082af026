"""Views of scanned documents in the terminal and as HTML, and their shared parts."""
