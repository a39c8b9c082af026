"""What terminal and HTML pages share."""
