"""What people see of the workshop's results: pages, files and the terminal."""
