"""Is this package alone in its folder?

The distribution ``attention`` on the Python index, a layer for Keras, installs into a
folder of the same name. Installed after ours, it replaces ``__init__.py``; uninstalling
it deletes ours. So when ours finds that the two share a folder, importing it fails with
an explanation.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

OURS, OTHER = "coding-attention", "attention"


def refuse_mixed(package_file: str) -> None:
    """Require that the distribution ``attention`` has installed nothing next to ours.

    Args:
        package_file: the file of the package being imported.

    Raises:
        ImportError: the two are mixed.

    Example:
        >>> import attention
        >>> from attention.installation import refuse_mixed
        >>> refuse_mixed(attention.__file__)
    """
    try:
        other = distribution(OTHER)
    except PackageNotFoundError:
        return
    if _folder(other) == Path(package_file).parent:
        raise ImportError(
            f"two packages are installed in {Path(package_file).parent}: {OURS} and "
            f"{OTHER} {other.version}, another project with the same import name. "
            f"Their files are mixed, so neither is complete. Run: "
            f"pip uninstall -y {OTHER} {OURS}, then install the one you need."
        )


def _folder(other: Distribution) -> Path:
    return Path(str(other.locate_file("attention"))).absolute()
