"""The quick checks of each chapter, one module a chapter."""
