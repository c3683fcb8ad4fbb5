"""The workbook as a site and as a PDF: `build` makes them, offline, from ``book.yml``."""
