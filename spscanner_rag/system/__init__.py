"""What the operating system needs of a program: files, locks, forks and threads."""
