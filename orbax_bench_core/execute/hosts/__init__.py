"""Hosts: where a worker runs."""
