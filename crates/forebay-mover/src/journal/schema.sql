-- A journal of staging (docs/explanation/staging.md). `sum` is the checksum of the row (row_sums.rs). Paths are bytes. States are those of `State`; `errno` is that of the reason beside it.
CREATE TABLE meta (name TEXT PRIMARY KEY, value, sum INTEGER) WITHOUT ROWID;
-- What was asked for. A reason says why it could not be looked through.
CREATE TABLE transfer (
  id INTEGER PRIMARY KEY, what INTEGER NOT NULL, source BLOB NOT NULL, target BLOB NOT NULL,
  generation INTEGER NOT NULL, reason TEXT, errno INTEGER, sum INTEGER, UNIQUE (source, target, what)
);
-- Paths below the source of a transfer that are not to be staged with it.
CREATE TABLE left_out (source BLOB, target BLOB, path BLOB, sum INTEGER, PRIMARY KEY (source, target, path)) WITHOUT ROWID;
-- Directories of targets, with links resolved: what makes two names one place.
CREATE TABLE place (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, sum INTEGER);
-- Parents have smaller numbers than children. `is_of_tree`: made, with the mode and times of its source.
-- `is_made`: by us; it gets them again whenever something arrives in it.
CREATE TABLE directory (
  id INTEGER PRIMARY KEY, source BLOB NOT NULL, target BLOB NOT NULL, place INTEGER NOT NULL,
  is_of_tree INTEGER NOT NULL, is_made INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL, generation INTEGER NOT NULL,
  reason TEXT, remedy TEXT, errno INTEGER, sum INTEGER, UNIQUE (source, target)
);
-- Files and symbolic links. `link_of`: the entry that is the same file under another name.
-- Size, time and inode are those of the source when it was last looked at.
CREATE TABLE entry (
  id INTEGER PRIMARY KEY, directory INTEGER NOT NULL, place INTEGER NOT NULL, name BLOB NOT NULL,
  source_name BLOB, kind INTEGER NOT NULL, state INTEGER NOT NULL, generation INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  link_of INTEGER, checksum INTEGER, reason TEXT, remedy TEXT, errno INTEGER, sum INTEGER, UNIQUE (place, name)
);
-- Which entry stands for a file of the transfer in hand that has several names.
CREATE TABLE linked (device INTEGER, inode INTEGER, entry INTEGER, sum INTEGER, PRIMARY KEY (device, inode)) WITHOUT ROWID;
-- Pieces of large files that are copied.
CREATE TABLE piece (entry INTEGER, number INTEGER, checksum INTEGER, sum INTEGER, PRIMARY KEY (entry, number)) WITHOUT ROWID;
-- What was found in a source and cannot be staged. `is_for_good`: whatever becomes of it, this staging cannot save it.
CREATE TABLE refusal (
  source BLOB PRIMARY KEY, reason TEXT NOT NULL, remedy TEXT, errno INTEGER, is_for_good INTEGER NOT NULL, sum INTEGER
) WITHOUT ROWID;
-- What arrived, but not with all its attributes; how often, and on what first.
CREATE TABLE note (text TEXT PRIMARY KEY, count INTEGER NOT NULL, example BLOB NOT NULL, sum INTEGER) WITHOUT ROWID;
