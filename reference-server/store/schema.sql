CREATE TABLE IF NOT EXISTS screening (
  tenant    uuid    NOT NULL,
  -- Seconds since the epoch, exact: timestamptz holds only microseconds.
  at        numeric NOT NULL,
  id        bigint  NOT NULL,
  test_time text    NOT NULL,
  json      text    NOT NULL,
  PRIMARY KEY (tenant, id)
);
-- Every page is one range scan of this index.
CREATE UNIQUE INDEX IF NOT EXISTS screening_page ON screening (tenant, at, id);
-- The outbox (section 6): written in the transaction that stores the screening, and kept after its deletion.
CREATE TABLE IF NOT EXISTS event (
  tenant    uuid   NOT NULL,
  -- The order of storage.
  sequence  bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id        bigint NOT NULL,
  test_time text   NOT NULL,
  json      text   NOT NULL,
  PRIMARY KEY (tenant, sequence)
);
-- The last event of a tenant that a sink has acknowledged.
CREATE TABLE IF NOT EXISTS delivery (
  sink      text   NOT NULL,
  tenant    uuid   NOT NULL,
  sequence  bigint NOT NULL,
  PRIMARY KEY (sink, tenant)
);
