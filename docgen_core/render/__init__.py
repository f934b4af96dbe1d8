"""From a page to a file with exact boxes and equal bytes."""
