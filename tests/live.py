"""A Jupyter of one's own: JupyterLab and Notebook, served side by side, and a browser.

Nothing here waits for a time: only for a state. The limits are those of a machine that
has much else to do. A visit that can lead nowhere ends at once, whatever it waits for:
the page says when it is lost.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Error

from tools.measure.visit import visiting

ROOT = Path(__file__).resolve().parents[1]
LONG = 600_000  # milliseconds
SERVERS = {"JupyterLab": "jupyterlab", "Notebook": "notebook"}
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
# What no host comes back from: a dialog over everything (a kernel that died and was
# started anew opens one, too), a dead kernel, a lab that cannot be shown.
WATCH = """(() => {
  const lost = () => {
    const dialog = document.querySelector('.jp-Dialog');
    if (dialog) return `a dialog: ${dialog.textContent}`;
    const widget = document.querySelector('.jupyter-widgets-error-widget');
    if (widget) return `a lab that is not shown: ${widget.textContent}`;
    const notebook = window.jupyterapp?.shell?.currentWidget;
    const kernel = notebook?.sessionContext?.session?.kernel;
    if (['dead', 'autorestarting'].includes(kernel?.status)) return 'a dead kernel';
  };
  const timer = setInterval(() => {
    const words = lost();
    if (!words) return;
    clearInterval(timer);
    tellLost(words);
  }, 250);
})()"""


@contextmanager
def jupyter(folder):
    """Serve the notebooks of a folder, from a clean home; give each host's address.

    Each host has a server of its own, as readers have it. One server for both takes the
    place of a file that both have, such as a font of formulas, from the host that asked
    first, and then forbids it to the other (seen in jupyter_server 2.21).
    """
    for module in SERVERS.values():
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
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    env |= {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
    with ExitStack() as servers:
        yield {
            host: servers.enter_context(_serving(module, folder, env))
            for host, module in SERVERS.items()
        }


@contextmanager
def _serving(module, folder, env):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", module, "--no-browser", f"--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--JupyterNotebookApp.expose_app_in_browser=True", "--LabApp.news_url=None",
        # A busy machine takes its time; a kernel that is late is not dead. That its
        # process has ended is seen by what would start it anew, and told to the page.
        "--MappingKernelManager.kernel_info_timeout=600", "--allow-root",
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    # What it has to say later must go somewhere, or it would stop at a full pipe.
    rest = Thread(target=server.stderr.read, daemon=True)
    try:
        _wait_for(f"{address}/", server.stderr)
        rest.start()
        yield address
    finally:
        server.terminate()  # ends its kernels, too
        server.wait(timeout=60)
        if rest.ident:
            rest.join(timeout=60)
        server.stderr.close()


def _wait_for(address, told):
    """Read what a server says until it names its address: then it answers there."""
    said = []
    for line in told:
        said.append(line)
        if address in line:
            return
    pytest.fail(f"Jupyter did not start:\n{''.join(said)[-2000:]}")


def told(message):
    """Give what the console says, with what could not be loaded."""
    if message.text.startswith("Failed to load resource"):
        return f"{message.text} {urlparse(message.location['url']).path}"
    return message.text


@contextmanager
def opened(browser, addresses, host, file, own=None, **options):
    """Open a notebook in a host; give the visit once its kernel has answered.

    Args:
        browser: a Chromium.
        addresses: where :func:`jupyter` serves.
        host: a key of ``HOSTS``.
        file: the notebook.
        own: what the host complains about by itself. Where it is known, an error that
            nothing caught ends the visit, unless it is one of these.
        options: of the browser's context.
    """
    options.setdefault("viewport", {"width": 1280, "height": 900})
    with visiting(browser, fresh=True, **options) as visit:
        yield from _watched(visit, addresses, host, file, own)


def _watched(visit, addresses, host, file, own):
    page = visit.page
    page.set_default_timeout(LONG)
    visit.failures = []  # errors alone: the hosts warn a lot
    lost = []

    def end(words):
        lost.append(words)
        page.close()  # whatever waits for the page is told so

    def uncaught(error):
        visit.failures.append(str(error))
        if own is not None and str(error) not in own:
            end(f"an error that nothing caught: {error}")

    page.on("pageerror", uncaught)
    page.on("console", lambda m: m.type == "error" and visit.failures.append(told(m)))
    page.on("crash", lambda _: end("the page crashed"))
    page.expose_function("tellLost", end)
    page.add_init_script(WATCH)
    try:
        visit.open(f"{addresses[host]}/{HOSTS[host].format(Path(file).stem)}/{file}")
        page.wait_for_function(IS_SHOWN, arg=file)
        assert page.evaluate(KERNEL_ANSWERS) == "connected"
        yield visit
    except Error as error:
        if lost:
            raise AssertionError(f"{file} in {host} is lost: {lost[0]}") from error
        raise
