"""Is this package alone in its folder?

Import names belong to nobody. The distribution ``attention`` on the Python index, a
layer for Keras, installs into a folder of the same name. Installed after ours, it
replaces ``__init__.py``; removed again, it takes ours away. So as soon as ours finds
that the two share a folder, it says so and stops.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

OURS, OTHER = "coding-attention", "attention"


def refuse_mixed(package_file: str) -> None:
    """Require that the distribution ``attention`` has put nothing beside our files.

    Args:
        package_file: the file of the package that is being imported.

    Raises:
        ImportError: it has.

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
            f"Their files are mixed, so neither is whole. Run: "
            f"pip uninstall -y {OTHER} {OURS}, then install the one that you need."
        )


def _folder(other: Distribution) -> Path:
    return Path(str(other.locate_file("attention"))).absolute()
