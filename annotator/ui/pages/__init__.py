"""One file per page: a function `page` each."""
