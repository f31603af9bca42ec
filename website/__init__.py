"""The docs site: pages made from the code, links, the strict build, and pictures of real runs."""
