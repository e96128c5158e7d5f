-- Where tables and views keep their files: the location and the folders that their properties name. No
-- two of them may share or nest such a place, unless the warehouse allows it.

-- path: in the one spelling of place_of, so that an index answers what lies above and below.
CREATE TABLE frazil.place (
	path text COLLATE "C" NOT NULL,
	table_id uuid NOT NULL REFERENCES frazil.tabular ON DELETE CASCADE,
	PRIMARY KEY (path, table_id)
);
CREATE INDEX place_table ON frazil.place (table_id);

-- By the configuration of the daemon that started last.
ALTER TABLE frazil.warehouse ADD allow_overlap boolean NOT NULL DEFAULT false;

-- placed: all its places are known. Of older tables only the location is, until their metadata is read.
ALTER TABLE frazil.tabular ADD placed boolean NOT NULL DEFAULT false;
CREATE INDEX tabular_unplaced ON frazil.tabular (table_id) WHERE NOT placed;

-- The folder that a path names, whatever its spelling: no scheme for files, no empty and no "." part,
-- one '/' at the end, percent signs undone, everything but printable ASCII escaped. Two paths that any
-- reader could take for the same have the same text; it is for comparing only.
CREATE FUNCTION frazil.place_of(p_uri text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	v text := regexp_replace(p_uri, '^file:(//)?(?=/)', '', 'i');
BEGIN
	IF v ~ '%[0-9A-Fa-f]{2}' THEN
		SELECT encode(string_agg(CASE WHEN m.p[1] IS NULL THEN convert_to(m.p[2], 'UTF8')
			ELSE decode(m.p[1], 'hex') END, ''::bytea ORDER BY m.i), 'escape') INTO v
		FROM regexp_matches(v, '%([0-9A-Fa-f]{2})|((?:[^%]|%(?![0-9A-Fa-f]{2}))+)', 'g')
			WITH ORDINALITY m(p, i);
	ELSE
		v := encode(convert_to(v, 'UTF8'), 'escape');
	END IF;
	-- Longer than a row of an index; nothing that long is taken any more.
	RETURN left(regexp_replace(v || '/', '/(\.?/)+', '/', 'g'), 2500);
END
$$;

-- A place and every folder above it, from the top.
CREATE FUNCTION frazil.folders_of(p_place text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT array_agg(array_to_string(s.v[1:i], '/') || '/' ORDER BY i)
	FROM (SELECT string_to_array(rtrim(p_place, '/'), '/') AS v) s,
		generate_series(1, greatest(cardinality(s.v), 1)) i
$$;

-- Replaces the places of the tables and views named by these; the first one of each is its location.
-- Only what is new is judged: FZ004 when it lies in, around or at a place of another one. Whoever takes
-- a place holds its name alone and the names above it in company until the end of the transaction, so
-- that two that would overlap wait for each other. It is the last step of its statement: rows are
-- locked before names, and names in order. (Plans that were made for an empty table must not scan a
-- full one.)
CREATE FUNCTION frazil.take_places(p_table uuid[], p_path text[]) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
	c_deep CONSTANT int4 := 24; -- names that are held for one place, at most
	x record;
	y record;
	v_table uuid[];
	v_path text[];
	v_new text[];
	v_owner uuid[];
BEGIN
	SELECT array_agg(q.table_id), array_agg(q.path) INTO v_table, v_path FROM (
		SELECT DISTINCT u.table_id, frazil.place_of(u.path) AS path
		FROM unnest(p_table, p_path) u(table_id, path)) q;
	SELECT array_agg(q.path), array_agg(q.table_id) INTO v_new, v_owner
	FROM unnest(v_table, v_path) q(table_id, path) WHERE NOT EXISTS (SELECT FROM frazil.place o
		WHERE o.path = q.path AND o.table_id = q.table_id);
	FOR x IN
		SELECT hashtextextended('frazil.place ' || f.path, 0) AS key,
			bool_or(f.i = least(cardinality(n.v), c_deep)) AS alone
		FROM (SELECT frazil.folders_of(u.path) AS v FROM unnest(v_new) u(path)) n,
			LATERAL unnest(n.v[1:c_deep]) WITH ORDINALITY f(path, i)
		GROUP BY 1 ORDER BY 1
	LOOP
		IF x.alone THEN
			PERFORM pg_advisory_xact_lock(x.key);
		ELSE
			PERFORM pg_advisory_xact_lock_shared(x.key);
		END IF;
	END LOOP;
	UPDATE frazil.tabular t SET location = l.path, placed = true
	FROM (SELECT DISTINCT ON (u.table_id) u.table_id, u.path
		FROM unnest(p_table, p_path) WITH ORDINALITY u(table_id, path, i)
		ORDER BY u.table_id, u.i) l
	WHERE t.table_id = l.table_id AND (t.location <> l.path OR NOT t.placed);
	DELETE FROM frazil.place o WHERE o.table_id = ANY (v_table) AND NOT EXISTS (
		SELECT FROM unnest(v_table, v_path) u(table_id, path)
		WHERE u.table_id = o.table_id AND u.path = o.path);
	INSERT INTO frazil.place (path, table_id)
	SELECT u.path, u.table_id FROM unnest(v_new, v_owner) u(path, table_id);
	SELECT n.path, o.path AS other INTO y
	FROM unnest(v_new, v_owner) n(path, table_id)
		JOIN frazil.tabular t ON t.table_id = n.table_id
		JOIN frazil.namespace s USING (namespace_id)
		JOIN frazil.warehouse w ON w.warehouse_id = s.warehouse_id AND NOT w.allow_overlap,
		LATERAL (
			(SELECT o.path FROM frazil.place o
			WHERE o.path = ANY (frazil.folders_of(n.path)) AND o.table_id <> n.table_id LIMIT 1)
			UNION ALL
			(SELECT o.path FROM frazil.place o
			WHERE o.path > n.path COLLATE "C"
				AND o.path < left(n.path, -1) || '0' COLLATE "C"
				AND o.table_id <> n.table_id ORDER BY o.path LIMIT 1)) o
	LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION '% overlaps with %', y.path, y.other USING ERRCODE = 'FZ004';
	END IF;
	RETURN true;
END
$$;

-- The places of a table that is older than this list, read from its metadata. Not judged: what overlaps
-- was allowed when it came. Nothing is done when the table was changed since.
CREATE FUNCTION frazil.note_places(p_table uuid, p_version int8, p_path text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.head h WHERE h.table_id = p_table AND h.version = p_version FOR SHARE;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	UPDATE frazil.tabular t SET placed = true WHERE t.table_id = p_table AND NOT t.placed;
	IF FOUND THEN
		INSERT INTO frazil.place (path, table_id)
		SELECT DISTINCT frazil.place_of(u.path), p_table FROM unnest(p_path) u(path)
		ON CONFLICT DO NOTHING;
	END IF;
	RETURN true;
END
$$;

-- Which paths lie at or beneath a place of another table or view than p_table. Folders are looked up
-- once for all files in them.
CREATE FUNCTION frazil.shared_paths(p_table uuid, p_path text[]) RETURNS SETOF text
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
	WITH f AS (
		SELECT DISTINCT regexp_replace(u.path, '/[^/]*$', '') AS folder FROM unnest(p_path) u(path)
	), s AS (
		SELECT f.folder FROM f WHERE EXISTS (SELECT FROM frazil.place o
			WHERE o.path = ANY (frazil.folders_of(frazil.place_of(f.folder)))
			AND o.table_id <> p_table)
	)
	SELECT u.path FROM unnest(p_path) u(path)
	WHERE regexp_replace(u.path, '/[^/]*$', '') IN (SELECT s.folder FROM s)
$$;

INSERT INTO frazil.place (path, table_id) SELECT frazil.place_of(t.location), t.table_id
FROM frazil.tabular t;
-- A view has files of metadata only.
UPDATE frazil.tabular t SET placed = true WHERE t.kind = 1;

CREATE FUNCTION frazil.ensure_warehouse(p_name text, p_location text, p_overlap boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	IF NOT frazil.ensure_warehouse(p_name, p_location) THEN
		RETURN false;
	END IF;
	UPDATE frazil.warehouse w SET allow_overlap = p_overlap
	WHERE w.name = p_name AND w.allow_overlap <> p_overlap;
	RETURN true;
END
$$;

-- 0 replaced, 1 it was changed or is gone
CREATE FUNCTION frazil.replace_view(p_view uuid, p_version int8, p_metadata text, p_places text[])
RETURNS int4 LANGUAGE plpgsql AS $$
BEGIN
	UPDATE frazil.tabular t SET view_version = t.view_version + 1, view_location = p_metadata
	WHERE t.table_id = p_view AND t.kind = 1 AND t.view_version = p_version;
	IF NOT FOUND THEN
		RETURN 1;
	END IF;
	PERFORM frazil.take_places(array_fill(p_view, ARRAY[cardinality(p_places)]), p_places);
	RETURN 0;
END
$$;

-- As before, and what other places cover is looked up in their list.
CREATE OR REPLACE FUNCTION frazil.drop_and_purge(p_table uuid, p_incarnation int8, p_purge text[])
RETURNS TABLE (done boolean, kept text[]) LANGUAGE plpgsql AS $$
BEGIN
	kept := '{}';
	done := frazil.drop_table(p_table, p_incarnation, '{}');
	IF NOT done OR cardinality(p_purge) = 0 THEN
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT coalesce(array_agg(s.path), '{}') INTO kept FROM frazil.shared_paths(p_table, p_purge) s(path);
	INSERT INTO frazil.object (path, table_id, epoch, state, since_ms)
	SELECT DISTINCT u.path COLLATE "C", p_table, 1, 2, frazil.now_ms() FROM unnest(p_purge) u(path)
	WHERE u.path NOT IN (SELECT k.path FROM unnest(kept) k(path)) ORDER BY 1 ON CONFLICT DO NOTHING;
	RETURN NEXT;
END
$$;

-- As before; each path of the purge is looked up, not compared with all others.
CREATE OR REPLACE FUNCTION frazil.drop_head(p_table uuid, p_incarnation int8, p_purge text[],
	p_all boolean)
RETURNS TABLE (done boolean, kept text[], metadata text) LANGUAGE plpgsql AS $$
DECLARE
	v_root text;
BEGIN
	SELECT h.metadata_location, rtrim(t.location, '/') || '/' INTO metadata, v_root
	FROM frazil.head h JOIN frazil.tabular t USING (table_id)
	WHERE h.table_id = p_table AND h.incarnation = p_incarnation FOR UPDATE OF h;
	SELECT d.done, d.kept INTO done, kept
	FROM frazil.drop_and_purge(p_table, p_incarnation, p_purge) d;
	IF done THEN
		UPDATE frazil.object o SET epoch = 1
		WHERE o.table_id = p_table AND o.state IN (2, 3) AND o.epoch = 0
			AND ((p_all AND starts_with(o.path, v_root))
				OR o.path IN (SELECT u.path FROM unnest(p_purge) u(path)));
	END IF;
	RETURN NEXT;
END
$$;
