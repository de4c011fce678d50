"""The pages, one file each with a `page` function."""
