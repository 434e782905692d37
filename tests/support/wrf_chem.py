"""The published statistics of WRF-CHEM on a burst buffer (KAUST's talk, 2018), as Cray's MPI prints them."""

#: name, way, aggregators, stripe unit, collective calls, system calls, stripe sized, bytes, mean, gaps, active
FIRST = (
    ("wrfinput_d01", "read", 4, 8388608, 527360, 762, 108, 2930104643, 3845281, 2, None),
    (
        "wrfout_d01_2007-04-03_00_00_00",
        "write",
        4,
        8388608,
        552960,
        797,
        114,
        3045341799,
        3821006,
        2,
        "234240,0,0,318720",
    ),
    ("wrfbdy_d01", "read", 2, 8388608, 2338560, 1876, 0, 371398962, 197973, 6, None),
)
SECOND = (
    ("wrfinput_d01", "read", 4, 2097152, 527360, 1810, 1141, 2930104643, 1618842, 2, None),
    (
        "wrfout_d01_2007-04-03_00_00_00",
        "write",
        4,
        2097152,
        552960,
        1886,
        1183,
        3045341799,
        1614709,
        2,
        "208640,33280,0,311040",
    ),
    ("wrfbdy_d01", "read", 4, 197973, 2338560, 3705, 114, 371398962, 100242, 5, None),
)


def box(name, way, aggregators, unit, collective, calls, sized, moved, mean, gaps, active):
    lines = {
        f"independent {way}s": 0,
        f"collective {way}s": collective,
        f"independent {'writers' if way == 'write' else 'readers'}": 0,
        "aggregators": aggregators,
        "stripe count": 1,
        "stripe size": unit,
        f"system {way}s": calls,
        f"stripe sized {way}s": sized,
        **({"aggregators active": f"{active} (1, <= 2, > 2, 4)"} if active else {}),
        f"total bytes for {way}s": f"{moved} = {moved >> 20} MiB = {moved >> 30} GiB",
        f"ave system {way} size": mean,
        **({"read-modify-write count": 0, "read-modify-write bytes": 0} if way == "write" else {}),
        f"number of {way} gaps": gaps,
        f"ave {way} gap size": 524288,
    }
    body = "".join(f"|   {key:<23} = {value}\n" for key, value in lines.items())
    return f"+-----+\n| MPIIO {way} access patterns for /bb/{name}\n{body}+-----+\n"


def text(blocks):
    return "Timing for main: time 2007-04-03_00:00:00\n".join(box(*block) for block in blocks)
