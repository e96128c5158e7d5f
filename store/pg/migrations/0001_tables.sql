-- Tables of the catalog and of the commit log. Names and paths compare by bytes (COLLATE "C").
-- Times are milliseconds since 1970 by this server's clock.
CREATE SCHEMA IF NOT EXISTS frazil;

CREATE TABLE frazil.schema_info (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	version int4 NOT NULL,
	min_binary int4 NOT NULL,
	secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);

-- The secret is generated, never configured: 366 random bits of the server's strong generator,
-- condensed to 32 bytes.
INSERT INTO frazil.schema_info (version, min_binary, secret)
VALUES (0, 1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
	|| uuid_send(gen_random_uuid())));

CREATE TABLE frazil.warehouse (
	warehouse_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE,
	location text COLLATE "C" NOT NULL
);

-- parent: all levels but the last; name: the last one.
CREATE TABLE frazil.namespace (
	namespace_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	warehouse_id int8 NOT NULL REFERENCES frazil.warehouse,
	parent text[] COLLATE "C" NOT NULL,
	name text COLLATE "C" NOT NULL,
	properties jsonb NOT NULL DEFAULT '{}',
	UNIQUE (warehouse_id, parent, name)
);

-- kind: 0 table, 1 view. Tables keep their location in head, views keep theirs here.
CREATE TABLE frazil.tabular (
	table_id uuid PRIMARY KEY,
	namespace_id int8 NOT NULL REFERENCES frazil.namespace,
	name text COLLATE "C" NOT NULL,
	kind int2 NOT NULL,
	location text COLLATE "C" NOT NULL,
	view_version int8 NOT NULL DEFAULT 0,
	view_location text COLLATE "C",
	UNIQUE (namespace_id, name)
);
CREATE INDEX tabular_location ON frazil.tabular (location text_pattern_ops);

CREATE SEQUENCE frazil.incarnation AS int8;

-- The row that every publish competes for. No index on a changing column and room on the page, so
-- that updates stay within it.
CREATE TABLE frazil.head (
	table_id uuid PRIMARY KEY,
	incarnation int8 NOT NULL,
	epoch int8 NOT NULL,
	holder uuid NOT NULL,
	version int8 NOT NULL,
	metadata_location text COLLATE "C" NOT NULL,
	last_batch int8 NOT NULL,
	last_seq int8 NOT NULL,
	next_row_id int8 NOT NULL
) WITH (fillfactor = 50);

-- Unknown ids older than this are refused. Survives its table: the uuid may come back.
CREATE TABLE frazil.horizon (
	table_id uuid PRIMARY KEY,
	closed_before int8 NOT NULL
) WITH (fillfactor = 50);

-- state: 0 open, 1 sealed, 2 committed, 3 rejected, 4 aborted, 5 expired, 6 lost.
CREATE TABLE frazil.txn (
	txn uuid PRIMARY KEY,
	table_id uuid NOT NULL,
	incarnation int8 NOT NULL,
	ref text COLLATE "C" NOT NULL,
	kind int4 NOT NULL,
	isolation int4 NOT NULL,
	read_snapshot int8,
	principal text COLLATE "C" NOT NULL,
	params bytea NOT NULL,
	begin_msg bytea NOT NULL,
	ttl_ms int8 NOT NULL,
	created_ms int8 NOT NULL,
	expires_ms int8 NOT NULL,
	state int2 NOT NULL,
	commit_requested boolean NOT NULL DEFAULT false,
	set_digest bytea,
	seal bytea,
	summary bytea,
	batch_no int8 NOT NULL DEFAULT 0,
	final_ms int8,
	id_ms int8 NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX txn_live ON frazil.txn (table_id) WHERE state <= 1;
CREATE INDEX txn_age ON frazil.txn (table_id, id_ms);

CREATE TABLE frazil.fragment (
	txn uuid NOT NULL,
	fragment_id text COLLATE "C" NOT NULL,
	attempt int4 NOT NULL,
	digest bytea NOT NULL,
	payload bytea NOT NULL,
	PRIMARY KEY (txn, fragment_id, attempt)
);

CREATE TABLE frazil.batch (
	batch uuid PRIMARY KEY,
	table_id uuid NOT NULL,
	incarnation int8 NOT NULL,
	batch_no int8 NOT NULL,
	epoch int8 NOT NULL,
	base_version int8 NOT NULL,
	txns uuid[] NOT NULL,
	txn_states int2[] NOT NULL,
	outcomes bytea NOT NULL,
	snapshots int8[] NOT NULL,
	first_row_id int8 NOT NULL,
	added_rows int8 NOT NULL,
	metadata_location text COLLATE "C" NOT NULL,
	created_ms int8 NOT NULL,
	UNIQUE (table_id, incarnation, batch_no)
);

-- One row per path that is not simply a part of a published table. state: 0 staged (owner: a
-- transaction), 1 ledger (owner: a batch id), 2 queued for deletion, 3 claimed by a cleaner.
CREATE TABLE frazil.object (
	path text COLLATE "C" PRIMARY KEY,
	table_id uuid NOT NULL,
	owner uuid,
	epoch int8 NOT NULL DEFAULT 0,
	state int2 NOT NULL,
	since_ms int8 NOT NULL
);
CREATE INDEX object_owner ON frazil.object (owner);
CREATE INDEX object_table ON frazil.object (table_id, state, since_ms);
