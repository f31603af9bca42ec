"""Results for people: console, Markdown and HTML."""
