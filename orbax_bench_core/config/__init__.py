"""The suite file: YAML in, validated models out."""
