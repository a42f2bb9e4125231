"""A tiny request/response layer without a web server."""
