CREATE TABLE share (
  session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  node TEXT NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  is_delivered INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, node)
) STRICT;
