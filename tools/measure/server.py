"""A static server on 127.0.0.1 that compresses like the hosts that publish sites."""

import gzip
from contextlib import contextmanager
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

TEXT = {".html", ".css", ".js", ".json", ".svg", ".txt", ".xml", ".ipynb", ".map"}


@cache
def _compressed(path, _modified):
    return gzip.compress(Path(path).read_bytes(), compresslevel=6, mtime=0)


class _Handler(SimpleHTTPRequestHandler):
    # One connection for many files, as published sites have it.
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if path.suffix not in TEXT or not path.is_file():
            super().do_GET()
            return
        body = _compressed(str(path), path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing: the requests are recorded in the browser."""


@contextmanager
def serving(folder):
    """Serve a folder as long as the block runs; gives the address."""

    def handler(*args):
        return _Handler(*args, directory=str(folder))

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
