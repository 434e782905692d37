"""Settings that may make I/O faster: a file each, or one for a family (docs/reference/settings.md)."""

from forebay.tune.errors import TuneError
from forebay.tune.settings.aggregators import CbNodes
from forebay.tune.settings.alignment import Hdf5Alignment, NcHeaderAlign, NcVarAlign
from forebay.tune.settings.buffer_size import CbBufferSize
from forebay.tune.settings.collective_buffering import CollectiveBuffering
from forebay.tune.settings.data_sieving import DataSieving, SievingBuffer
from forebay.tune.settings.lazy_io import LazyIo
from forebay.tune.settings.lustre import LfsStripeCount, LfsStripeSize
from forebay.tune.settings.namespace_layout import DwPlacement, DwStripeBytes
from forebay.tune.settings.no_independent import NoIndependent
from forebay.tune.settings.setting import Setting, SettingContext
from forebay.tune.settings.striping_hints import StripingFactor, StripingUnit

__all__ = ["ALL", "SettingContext", "Setting", "named"]

#: In the order in which they are shown.
ALL: tuple[Setting, ...] = (
    LfsStripeCount(),
    LfsStripeSize(),
    DwPlacement(),
    DwStripeBytes(),
    StripingFactor(),
    StripingUnit(),
    CbNodes(),
    CollectiveBuffering("write"),
    CollectiveBuffering("read"),
    CbBufferSize(),
    DataSieving("write"),
    DataSieving("read"),
    SievingBuffer("write"),
    SievingBuffer("read"),
    NoIndependent(),
    LazyIo(),
    NcVarAlign(),
    NcHeaderAlign(),
    Hdf5Alignment(),
)
_BY_NAME = {setting.name: setting for setting in ALL}


def named(name: str) -> Setting:
    """The setting. TuneError if there is none of this name, as in a study of another version."""
    if name not in _BY_NAME:
        raise TuneError(f"{name}: no such setting", f"known are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
