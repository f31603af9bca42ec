"""A folder for `PYTHONPATH`, whose `sitecustomize` attaches the recorder."""
