"""A Jupyter of one's own: JupyterLab and Notebook, served side by side, and a browser.

Nothing here waits for a time: only for a state. The limits are those of a machine that
has much else to do, and nothing takes longer for them.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LONG = 600_000  # milliseconds
# Where each host opens a file, in JupyterLab beside no other.
HOSTS = {"JupyterLab": "lab/workspaces/{}/tree", "Notebook": "notebooks"}
IS_SHOWN = "file => window.jupyterapp?.shell?.currentWidget?.context?.path === file"
# What could lie over the notebook, or come in later: news, and cells on demand only.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
# A cell that is run before its notebook has a kernel may ask which one to take, in a
# dialog that covers everything (read in JupyterLab's source; the dialog that once
# stopped a run was not seen). Until there is a kernel that answers, nothing is run.
KERNEL_ANSWERS = """async () => {
  await jupyterapp.restored;
  const notebook = jupyterapp.shell.currentWidget;
  await notebook.context.ready;
  await notebook.sessionContext.ready;
  await notebook.sessionContext.session.kernel.info;
  return notebook.sessionContext.session.kernel.connectionStatus;
}"""


@contextmanager
def jupyter(folder):
    """Serve the notebooks of a folder, from a clean home; give the address."""
    for module in ("jupyterlab", "notebook"):
        pytest.importorskip(module)
    home = folder / ".home"  # not shown: the reader's settings and layouts stay
    for name, values in SETTINGS.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    # What a reader has who installed the book alone: an extension that renders cells
    # in another way may lie in this environment.
    config = home / ".jupyter" / "labconfig" / "page_config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"disabledExtensions": {"jupyterlab-myst": True}}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--JupyterNotebookApp.expose_app_in_browser=True", "--LabApp.news_url=None",
        # A busy machine takes its time; a kernel that is late is not dead.
        "--MappingKernelManager.kernel_info_timeout=600",
        "--KernelManager.autorestart=False", "--allow-root",
    ]  # fmt: skip
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    env |= {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
    address = f"http://127.0.0.1:{port}"
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            _wait_for(address + "/api", home / "log")
            yield address
        finally:
            server.terminate()  # ends its kernels, too
            server.wait(timeout=60)


def _wait_for(address, log):
    for _ in range(2400):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"Jupyter did not start:\n{log.read_text()[-2000:]}")


@contextmanager
def opened(browser, address, host, file, **options):
    """Open a notebook in a host; give the visit once its kernel has answered."""
    from tests.chapter.labs.conftest import Visit

    options.setdefault("viewport", {"width": 1280, "height": 900})
    visit = Visit(browser, **options)
    page = visit.page
    page.set_default_timeout(LONG)
    visit.failures = []  # errors alone: the hosts warn a lot
    page.on("pageerror", lambda error: visit.failures.append(str(error)))
    page.on("console", lambda m: m.type == "error" and visit.failures.append(m.text))
    try:
        visit.open(f"{address}/{HOSTS[host].format(Path(file).stem)}/{file}")
        page.wait_for_function(IS_SHOWN, arg=file)
        assert page.evaluate(KERNEL_ANSWERS) == "connected"
        yield visit
    finally:
        visit.context.close()
