"""An async study for people: in the terminal, as Markdown and as a page with figures."""
