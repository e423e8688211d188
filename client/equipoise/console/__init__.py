"""The console: pages for one person, made on that person's own machine, with the profile that the commands use."""
