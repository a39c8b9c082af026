"""What the operating system needs of a program: whole files, locks, forks, threads, install hints."""
