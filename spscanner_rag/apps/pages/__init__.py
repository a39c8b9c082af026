"""Views of scanned documents in the terminal and as HTML, and the parts that all views share."""
