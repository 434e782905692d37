CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  token TEXT NOT NULL UNIQUE,
  user_id INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  pool TEXT NOT NULL,
  path TEXT NOT NULL,
  grains INTEGER NOT NULL CHECK (grains >= 0),
  granularity_bytes INTEGER NOT NULL CHECK (granularity_bytes > 0),
  node TEXT NOT NULL,
  state TEXT NOT NULL,
  created_unix_s INTEGER NOT NULL,
  hosts INTEGER NOT NULL DEFAULT 0,
  plan TEXT NOT NULL,
  problem TEXT
) STRICT;
CREATE TABLE use (
  session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  persistent INTEGER NOT NULL REFERENCES session (id),
  PRIMARY KEY (session, persistent)
) STRICT;
CREATE TABLE drained (pool TEXT PRIMARY KEY) STRICT;
CREATE TABLE node (name TEXT PRIMARY KEY, is_online INTEGER NOT NULL, seen_unix_s INTEGER NOT NULL) STRICT;
