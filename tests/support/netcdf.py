"""What a netCDF file's header says, read by the public format: CDF-1, CDF-2 and CDF-5."""

import struct

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
DOUBLE, FLOAT = 6, 5


class Header:
    """version; dimensions {name: length}, 0 for the unlimited one; variables {name: Variable}; records."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read(1 << 20)
        assert self.data[:3] == b"CDF"
        self.version = self.data[3]
        self.at = 4
        self.records = self._count()
        self.dimensions = dict(self._list(10, lambda: (self._name(), self._count())))
        self.attributes = dict(self._list(12, self._attribute))
        names = list(self.dimensions)
        self.variables = dict(self._list(11, lambda: self._variable(names)))
        self.end = self.at

    def _number(self, form):
        value = struct.unpack_from(">" + form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def _count(self):
        return self._number("q" if self.version == 5 else "i")

    def _text(self, bytes_):
        text = self.data[self.at : self.at + bytes_]
        self.at += (bytes_ + 3) // 4 * 4
        return text

    def _name(self):
        return self._text(self._count()).decode()

    def _list(self, tag, element):
        found, count = self._number("i"), self._count()
        assert found == tag or (found, count) == (0, 0)
        return [element() for _ in range(count)]

    def _attribute(self):
        name, kind = self._name(), self._number("i")
        return name, self._text(self._count() * SIZES[kind])

    def _variable(self, names):
        name = self._name()
        shape = [names[self._count()] for _ in range(self._count())]
        attributes = dict(self._list(12, self._attribute))
        kind, size = self._number("i"), self._count()
        begin = self._number("i" if self.version == 1 else "q")
        return name, {"shape": shape, "attributes": attributes, "type": kind, "size": size, "begin": begin}
